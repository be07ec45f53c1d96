package pleiad.check;

import static pleiad.check.Check.ENDPOINT;
import static pleiad.check.Check.JSON;
import static pleiad.check.Check.KEY;
import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.that;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** The client goes on through splits and merges: writes, reads, batches, bulk, queries and the change feed. */
final class Splits {
    private static final int FIXED = 100;
    private static final int FEED_PAGES = 10;
    private static final int KEYS = 24;
    private static final int PARTITIONS_MAX = 6;
    private static final int TIMES_LEAST = 5;
    private static final long LEAST_MS = 3_000;
    private static final long MOST_MS = 120_000;
    /** The admin API answers on the same port without TLS too, and needs no certificate to be trusted there. */
    private static final String PLAIN_ENDPOINT = ENDPOINT.replace("https:", "http:");
    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private interface Activity {
        void once(int turn) throws Exception;
    }

    private final String database;
    private final CosmosContainer container;
    private final Map<String, Integer> items = new ConcurrentHashMap<>();
    private final Map<String, Integer> seen = new ConcurrentHashMap<>();
    private String token;

    private Splits(String database, CosmosContainer container) {
        this.database = database;
        this.container = container;
    }

    /** A signed call of the admin API, on a container. */
    static HttpResponse<String> admin(String method, String database, String container, String name, String body) throws Exception {
        String path = "_pleiad/v1/dbs/" + database + "/colls/" + container;
        String date = DateTimeFormatter.RFC_1123_DATE_TIME.format(ZonedDateTime.now(ZoneOffset.UTC));
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(Base64.getDecoder().decode(KEY), "HmacSHA256"));
        String text = String.join("\n", method.toLowerCase(Locale.ROOT), name, path, date.toLowerCase(Locale.ROOT), "", "");
        String proof = Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
        HttpRequest request = HttpRequest.newBuilder(URI.create(PLAIN_ENDPOINT + path + "/" + name)).header("x-ms-date", date)
            .header("authorization", URLEncoder.encode("type=master&ver=1.0&sig=" + proof, StandardCharsets.UTF_8))
            .method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body)).build();
        return HTTP.send(request, HttpResponse.BodyHandlers.ofString());
    }

    private JsonNode partitions() throws Exception {
        var answer = admin("GET", database, container.getId(), "partitions", null);
        that(answer.statusCode() == 200, "%d %s", answer.statusCode(), answer.body());
        return JSON.readTree(answer.body());
    }

    private static String keyOf(int n) {
        return "k" + n % KEYS;
    }

    private List<String> ids() throws Exception {
        List<String> ids = new ArrayList<>();
        partitions().get("partitions").forEach(each -> ids.add(each.get("id").asText()));
        return ids;
    }

    /**
     * Splits a partition; what another change has overtaken is let go. Merges come later: to a client whose query has
     * begun before a split and a merge of one of its halves, the merged range is a child of its own.
     */
    private void split(int turn) throws Exception {
        List<String> ids = ids();
        if (ids.size() < PARTITIONS_MAX) {
            String body = "{\"partition\":\"" + ids.get(ThreadLocalRandom.current().nextInt(ids.size())) + "\"}";
            var answer = admin("POST", database, container.getId(), "split", body);
            that(List.of(201, 202, 400, 404, 410, 412).contains(answer.statusCode()), "%d %s", answer.statusCode(), answer.body());
        }
        Thread.sleep(300);
    }

    private void mergeAll() throws Exception {
        for (List<String> ids = ids(); ids.size() > 1; ids = ids()) {
            String body = "{\"partitions\":[\"" + ids.get(0) + "\",\"" + ids.get(1) + "\"]}";
            var answer = admin("POST", database, container.getId(), "merge", body);
            that(List.of(201, 202).contains(answer.statusCode()), "%d %s", answer.statusCode(), answer.body());
            ChangeFeed.until(this::isSettled, "a merge does not end");
        }
    }

    private void write(int n) {
        String id = "w" + n % 50;
        String key = keyOf(n);
        container.upsertItem(item(id, key, n));
        equal(container.readItem(id, pk(key), JsonNode.class).getItem().get("n").asInt(), n);
        items.put(key + "/" + id, n);
        container.patchItem("counter", pk("k0"), CosmosPatchOperations.create().increment("/count", 1), JsonNode.class);
        if (n % 4 == 0) {
            container.deleteItem(id, pk(key), null);
            items.remove(key + "/" + id);
        }
    }

    private void batch(int n) {
        String key = keyOf(n);
        CosmosBatch pair = CosmosBatch.createCosmosBatch(pk(key));
        for (String id : List.of("pair-a", "pair-b")) {
            pair.upsertItemOperation(item(id, key, n));
        }
        var response = container.executeCosmosBatch(pair);
        that(response.isSuccessStatusCode(), "a batch failed with %d: %s", response.getStatusCode(), response.getErrorMessage());
        for (String id : List.of("pair-a", "pair-b")) {
            items.put(key + "/" + id, n);
        }
    }

    private void bulk(int turn) {
        List<CosmosItemOperation> operations = new ArrayList<>();
        for (int n = 0; n < 60; n += 1) {
            operations.add(CosmosBulkOperations.getUpsertItemOperation(item("bulk" + n, keyOf(n), turn), pk(keyOf(n))));
        }
        for (var each : container.executeBulkOperations(operations)) {
            that(each.getException() == null && each.getResponse().isSuccessStatusCode(), "an operation failed: %s", each.getException());
        }
        for (int n = 0; n < 60; n += 1) {
            items.put(keyOf(n) + "/bulk" + n, turn);
        }
    }

    /** The items that nobody changes are there once each, in order and page by page. */
    private void query(int turn) {
        List<Integer> found = new ArrayList<>();
        container.queryItems("SELECT VALUE c.n FROM c WHERE c.fixed ORDER BY c.n", new CosmosQueryRequestOptions(), Integer.class)
            .iterableByPage(15).forEach(page -> found.addAll(page.getResults()));
        equal(found.size(), FIXED);
        for (int n = 0; n < FIXED; n += 1) {
            equal(found.get(n), n);
        }
        equal(Check.told(Check.query(container, "SELECT VALUE COUNT(1) FROM c WHERE c.fixed")), "[" + FIXED + "]");
    }

    private boolean follow() {
        var options = token == null ? CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange())
            : CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(token);
        var read = ChangeFeed.read(container, options, FEED_PAGES);
        token = read.token();
        read.items().forEach(each -> seen.put(each.get("pk").asText() + "/" + each.get("id").asText(), each.path("n").asInt()));
        return !read.items().isEmpty();
    }

    static void run() {
        withDatabase("splits", database -> {
            CosmosContainer container = newContainer(database, "splits", 20000);
            for (int n = 0; n < FIXED; n += 1) {
                container.createItem(item("f" + n, keyOf(n), n).put("fixed", true));
            }
            container.createItem(item("counter", "k0").put("count", 0));
            new Splits(database.getId(), container).checkAll();
        });
    }

    private void checkAll() {
        Map<String, Activity> activities = new LinkedHashMap<>();
        activities.put("the partitions are split", this::split);
        activities.put("writes, reads, patches and deletes", this::write);
        activities.put("batches", this::batch);
        activities.put("bulk", this::bulk);
        activities.put("queries over all partitions", this::query);
        activities.put("the change feed", turn -> follow());
        Map<String, AtomicInteger> done = new LinkedHashMap<>();
        activities.keySet().forEach(name -> done.put(name, new AtomicInteger()));
        Map<String, Throwable> errors = runAll(activities, done);
        activities.keySet().forEach(name -> check("splits: " + name, () -> {
            if (errors.containsKey(name)) {
                throw new AssertionError(Check.describe(errors.get(name)));
            }
            that(done.get(name).get() >= TIMES_LEAST, "only %d times", done.get(name).get());
        }));
        check("splits: afterwards every acknowledged write is there once", () -> {
            ChangeFeed.until(this::isSettled, "a change of the partitions does not end");
            List<JsonNode> found = Check.query(container, "SELECT * FROM c");
            equal(found.size(), FIXED + 1 + items.size());
            for (JsonNode each : found) {
                Integer n = items.get(each.get("pk").asText() + "/" + each.get("id").asText());
                that(n == null || n == each.get("n").asInt(), "%s is not the last version", each);
            }
            int count = container.readItem("counter", pk("k0"), JsonNode.class).getItem().get("count").asInt();
            equal(count, done.get("writes, reads, patches and deletes").get());
        });
        check("splits: afterwards all is merged, and the client finds it", () -> {
            container.replaceThroughput(ThroughputProperties.createManualThroughput(400));
            mergeAll();
            query(0);
            batch(1);
            bulk(2);
            equal(Check.query(container, "SELECT * FROM c").size(), FIXED + 1 + items.size());
        });
        check("splits: afterwards the change feed has told the last version of everything", () -> {
            while (follow()) {
                that(seen.size() < 100_000, "the change feed does not end");
            }
            items.forEach((name, n) -> equal(seen.get(name), n));
        });
    }

    private boolean isSettled() {
        try {
            return partitions().get("settled").asBoolean();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /** Everything at once until each was done some times; the first error of each activity, by its name. */
    private Map<String, Throwable> runAll(Map<String, Activity> activities, Map<String, AtomicInteger> done) {
        Map<String, Throwable> errors = new ConcurrentHashMap<>();
        long begin = System.currentTimeMillis();
        List<Thread> threads = new ArrayList<>();
        activities.forEach((name, activity) -> threads.add(new Thread(() -> {
            for (int turn = 0; !errors.containsKey(name); turn += 1) {
                long passed = System.currentTimeMillis() - begin;
                boolean often = activities.keySet().stream().allMatch(each -> errors.containsKey(each) || done.get(each).get() >= TIMES_LEAST);
                if (passed > MOST_MS || often && passed > LEAST_MS) {
                    return;
                }
                try {
                    activity.once(turn);
                    done.get(name).incrementAndGet();
                } catch (Throwable error) {
                    errors.put(name, error);
                }
            }
        })));
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
        return errors;
    }
}
