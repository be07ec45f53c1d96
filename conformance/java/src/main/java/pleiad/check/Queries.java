package pleiad.check;

import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.json;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.query;
import static pleiad.check.Check.refused;
import static pleiad.check.Check.that;
import static pleiad.check.Check.told;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Queries over all partitions and in one. */
final class Queries {
    static void run() {
        withDatabase("queries", database -> {
            CosmosContainer container = newContainer(database, "queries", 20000);
            for (int n = 0; n < 60; n += 1) {
                var value = item(String.format("q%02d", n), "k" + n % 6, n).put("kind", List.of("red", "green", "blue").get(n % 3));
                value.set("tags", json("['t" + n % 4 + "','all']"));
                container.createItem(value.put("half", n / 2.0));
            }
            expected(container);
            grouped(container);
            answers(container);
            wrong(container);
        });
    }

    private static void expected(CosmosContainer container) {
        Map<String, String> queries = new LinkedHashMap<>();
        queries.put("SELECT VALUE c.n FROM c WHERE c.n = 7", "[7]");
        queries.put("SELECT c.id, c.half FROM c WHERE c.n = 3", "[{'id':'q03','half':1.5}]");
        queries.put("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", "[59,58,57]");
        // The client asks for pages of no item at all.
        queries.put("SELECT TOP 0 VALUE c.n FROM c ORDER BY c.n", "[]");
        queries.put("SELECT TOP 0 VALUE AVG(c.n) FROM c", "[]");
        queries.put("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", "[10,11,12]");
        queries.put("SELECT VALUE COUNT(1) FROM c", "[60]");
        // The client adds up what the partitions tell as doubles.
        queries.put("SELECT VALUE SUM(c.n) FROM c", "[1770.0]");
        queries.put("SELECT VALUE AVG(c.n) FROM c", "[29.5]");
        queries.put("SELECT VALUE MIN(c.n) FROM c", "[0]");
        queries.put("SELECT VALUE MAX(c.n) FROM c", "[59]");
        queries.put("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind", "['blue','green','red']");
        queries.put("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 5", "['t1','all']");
        queries.put("SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 't2')", "[15]");
        queries.put("SELECT VALUE c.n FROM c WHERE c.n > 10 AND c.n < 20 AND c.kind IN ('red') ORDER BY c.n", "[12,15,18]");
        queries.put("SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't0')", "[15]");
        queries.put("SELECT VALUE UPPER(CONCAT(c.id, '-x')) FROM c WHERE STARTSWITH(c.id, 'q00')", "['Q00-X']");
        queries.put("SELECT VALUE COUNT(1) FROM c WHERE c.id LIKE 'q_5'", "[6]");
        queries.put("SELECT * FROM c WHERE c.n > 1000", "[]");
        queries.put("SELECT VALUE 1 + 1", "[2]");
        queries.forEach((text, results) -> check("queries: " + text, () -> equal(told(query(container, text)), results)));
    }

    private static void grouped(CosmosContainer container) {
        check("queries: GROUP BY", () -> {
            var found = query(container, "SELECT c.kind, COUNT(1) AS n, SUM(c.n) AS total FROM c GROUP BY c.kind").stream()
                .collect(Collectors.toMap(each -> each.get("kind").asText(), each -> each.get("n").asInt() + "/" + each.get("total").asInt()));
            equal(found, Map.of("red", "20/570", "green", "20/590", "blue", "20/610"));
        });
        check("queries: DISTINCT without an order", () ->
            equal(query(container, "SELECT DISTINCT VALUE c.kind FROM c").stream().map(JsonNode::asText).collect(Collectors.toSet()), java.util.Set.of("red", "green", "blue")));
        check("queries: parameters of every type", () -> {
            var spec = new SqlQuerySpec("SELECT VALUE {list: @list, yes: @yes, n: c.n} FROM c WHERE c.kind = @text AND c.n > @number AND c.n < 34",
                new SqlParameter("@list", List.of(1, 2)), new SqlParameter("@yes", true), new SqlParameter("@text", "red"), new SqlParameter("@number", 30.5));
            equal(told(container.queryItems(spec, new CosmosQueryRequestOptions(), JsonNode.class).stream().toList()), "[{'list':[1,2],'yes':true,'n':33}]");
        });
        check("queries: one logical partition", () ->
            equal(query(container, "SELECT * FROM c", new CosmosQueryRequestOptions().setPartitionKey(pk("k1"))).size(), 10));
        check("queries: each feed range, together all", () -> {
            int all = 0;
            for (var range : container.getFeedRanges()) {
                all += query(container, "SELECT * FROM c", new CosmosQueryRequestOptions().setFeedRange(range)).size();
            }
            equal(all, 60);
        });
    }

    private static void answers(CosmosContainer container) {
        check("queries: pages have a charge, metrics and index metrics", () -> {
            var options = new CosmosQueryRequestOptions().setQueryMetricsEnabled(true).setIndexMetricsEnabled(true);
            var page = container.queryItems("SELECT * FROM c WHERE c.n < 5", options, JsonNode.class).iterableByPage().iterator().next();
            that(page.getRequestCharge() > 0 && page.getActivityId() != null, "no charge or activity");
            that(page.getCosmosDiagnostics().toString().contains("retrievedDocumentCount"), "no metrics");
            that(page.getCosmosDiagnostics().toString().contains("UtilizedSingleIndexes"), "no index metrics");
        });
        check("queries: a session token and a degree of parallelism are taken", () -> {
            String token = container.upsertItem(item("q00", "k0", 0).put("kind", "red")).getSessionToken();
            var options = new CosmosQueryRequestOptions().setSessionToken(token).setMaxDegreeOfParallelism(4).setMaxBufferedItemCount(10);
            equal(query(container, "SELECT * FROM c", options.setPartitionKey(pk("k0"))).size(), 10);
            equal(query(container, "SELECT * FROM c", new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(-1)).size(), 60);
        });
    }

    private static void wrong(CosmosContainer container) {
        for (String text : List.of("SELEC * FROM c", "SELECT VALUE NOPE(1) FROM c", "SELECT VALUE d.x FROM c")) {
            check("queries: refused with a code: " + text, () ->
                that(refused(400, () -> query(container, text)).getMessage().contains("SC"), "no code"));
        }
        check("queries: what is no continuation is refused", () ->
            refused(400, () -> container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), JsonNode.class).iterableByPage("no token", 5).iterator().next()));
    }
}
