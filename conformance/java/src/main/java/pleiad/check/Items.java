package pleiad.check;

import static pleiad.check.Check.JSON;
import static pleiad.check.Check.builder;
import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.json;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.query;
import static pleiad.check.Check.refused;
import static pleiad.check.Check.that;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosItemResponse;
import com.azure.cosmos.models.CosmosReadManyRequestOptions;
import com.azure.cosmos.models.IndexingDirective;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Items one by one, and many by their ids. */
final class Items {
    static void run() {
        withDatabase("items", database -> {
            CosmosContainer container = newContainer(database, "items", 20000);
            writes(container);
            etags(container);
            keysOfEveryType(container);
            options(database, container);
            values(container);
            many(container);
        });
    }

    private static void writes(CosmosContainer container) {
        check("items: create and read, with the system properties", () -> {
            CosmosItemResponse<ObjectNode> created = container.createItem(item("1", "a", 1));
            equal(created.getStatusCode(), 201);
            that(created.getETag() != null && created.getSessionToken() != null && created.getRequestCharge() > 0, "no etag, session or charge");
            JsonNode found = container.readItem("1", pk("a"), JsonNode.class).getItem();
            equal(found.get("n").asInt(), 1);
            for (String name : List.of("_rid", "_self", "_etag", "_ts")) {
                that(found.has(name), "no %s", name);
            }
            that(created.getDiagnostics().toString().contains("gatewayStatistics"), "no diagnostics");
        });
        check("items: a second one of the id is a conflict", () -> refused(409, () -> container.createItem(item("1", "a"))));
        check("items: replace, upsert and delete", () -> {
            equal(container.replaceItem(item("1", "a", 2), "1", pk("a"), null).getItem().get("n").asInt(), 2);
            equal(container.upsertItem(item("1", "a", 3)).getStatusCode(), 200);
            equal(container.upsertItem(item("2", "a", 4)).getStatusCode(), 201);
            equal(container.deleteItem("2", pk("a"), null).getStatusCode(), 204);
            refused(404, () -> container.readItem("2", pk("a"), JsonNode.class));
            refused(404, () -> container.deleteItem("2", pk("a"), null));
            refused(404, () -> container.replaceItem(item("2", "a"), "2", pk("a"), null));
        });
        check("items: no body comes back where it is not asked for", () -> {
            var silent = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
            that(container.upsertItem(item("1", "a", 5), pk("a"), silent).getItem() == null, "a body");
        });
        check("items: a partition key that is not the item's is refused", () -> refused(400, () -> container.createItem(item("9", "a"), pk("b"), null)));
        check("items: one of more than 2 MB is refused with 413", () ->
            refused(413, () -> container.createItem(item("big", "a").put("text", "x".repeat(2 << 20)))));
        check("items: an item without id is refused", () -> refused(400, () -> container.createItem(JSON.createObjectNode().put("pk", "a"))));
    }

    private static void etags(CosmosContainer container) {
        check("etags: the old one is refused, the current one passes", () -> {
            String first = container.createItem(item("etag", "a", 0)).getETag();
            String second = container.replaceItem(item("etag", "a", 1), "etag", pk("a"), new CosmosItemRequestOptions().setIfMatchETag(first)).getETag();
            that(!first.equals(second), "the same etag");
            refused(412, () -> container.replaceItem(item("etag", "a", 2), "etag", pk("a"), new CosmosItemRequestOptions().setIfMatchETag(first)));
            refused(412, () -> container.deleteItem("etag", pk("a"), new CosmosItemRequestOptions().setIfMatchETag(first)));
            container.deleteItem("etag", pk("a"), new CosmosItemRequestOptions().setIfMatchETag(second));
        });
        check("etags: a read that finds nothing new is 304", () -> {
            String etag = container.upsertItem(item("1", "a", 6)).getETag();
            var options = new CosmosItemRequestOptions().setIfNoneMatchETag(etag);
            equal(container.readItem("1", pk("a"), options, JsonNode.class).getStatusCode(), 304);
        });
    }

    private static void keysOfEveryType(CosmosContainer container) {
        Map<String, PartitionKey> keys = new LinkedHashMap<>();
        keys.put("'k'", pk("k"));
        keys.put("''", pk(""));
        keys.put("'Größe 漢字 🦊'", pk("Größe 漢字 🦊"));
        keys.put("'" + "k".repeat(1000) + "'", pk("k".repeat(1000)));
        keys.put("1.5", new PartitionKey(1.5));
        keys.put("-7", new PartitionKey(-7));
        keys.put("true", new PartitionKey(true));
        keys.put("null", new PartitionKey(null));
        keys.forEach((text, key) -> check("keys: " + text.substring(0, Math.min(20, text.length())), () -> {
            ObjectNode value = JSON.createObjectNode().put("id", "typed").set("pk", json(text));
            container.createItem(value, key, null);
            equal(container.readItem("typed", key, JsonNode.class).getItem().get("pk"), json(text));
            equal(container.readAllItems(key, JsonNode.class).stream().count(), 1L);
            container.deleteItem("typed", key, null);
        }));
        check("keys: an item without one", () -> {
            container.createItem(JSON.createObjectNode().put("id", "none"), PartitionKey.NONE, null);
            equal(container.readItem("none", PartitionKey.NONE, JsonNode.class).getItem().get("id").asText(), "none");
            container.deleteItem("none", PartitionKey.NONE, null);
        });
    }

    private static void options(CosmosDatabase database, CosmosContainer container) {
        check("sessions: a token of another client is obeyed, and one that is no token refused", () -> {
            String token = container.upsertItem(item("session", "a")).getSessionToken();
            try (CosmosClient other = builder().buildClient()) {
                CosmosContainer again = other.getDatabase(database.getId()).getContainer(container.getId());
                again.readItem("session", pk("a"), new CosmosItemRequestOptions().setSessionToken(token), JsonNode.class);
                var wrong = new CosmosItemRequestOptions().setSessionToken("no token");
                refused(400, () -> again.readItem("session", pk("a"), wrong, JsonNode.class));
            }
        });
        check("consistency: a read at eventual", () ->
            container.readItem("1", pk("a"), new CosmosItemRequestOptions().setConsistencyLevel(ConsistencyLevel.EVENTUAL), JsonNode.class));
        check("options: indexing directive and a trigger that is not there", () -> {
            container.upsertItem(item("directive", "a"), pk("a"), new CosmosItemRequestOptions().setIndexingDirective(IndexingDirective.EXCLUDE));
            var trigger = new CosmosItemRequestOptions().setPreTriggerInclude(List.of("absent"));
            refused(400, () -> container.createItem(item("t", "a"), pk("a"), trigger));
        });
    }

    private static void values(CosmosContainer container) {
        check("values: JSON comes back as it was written", () -> {
            JsonNode nested = json("{'a':[1,'two',null,true,{'b':[]}],'c':{},'text':'\\u0001 / 漢 🦊','small':1e-300,'large':1.7976931348623157e308,'whole':9007199254740991}");
            container.createItem(item("json", "j").set("nested", nested));
            equal(container.readItem("json", pk("j"), JsonNode.class).getItem().get("nested"), nested);
            equal(query(container, "SELECT VALUE c.nested FROM c WHERE c.id = 'json'").get(0), nested);
        });
    }

    private static void many(CosmosContainer container) {
        for (int n = 0; n < 150; n += 1) {
            container.createItem(item("m" + n, "k" + n % 20, n));
        }
        for (int count : List.of(1, 2, 50, 150)) {
            check("read many: " + count + " items", () -> {
                List<CosmosItemIdentity> identities = new ArrayList<>();
                for (int n = 0; n < count; n += 1) {
                    identities.add(new CosmosItemIdentity(pk("k" + n % 20), "m" + n));
                }
                var found = container.readMany(identities, new CosmosReadManyRequestOptions(), JsonNode.class);
                equal(found.getResults().stream().map(each -> each.get("n").asInt()).distinct().count(), (long) count);
                equal(found.getResults().size(), count);
            });
        }
        check("read many: what is not there is left out", () -> {
            var identities = List.of(new CosmosItemIdentity(pk("k1"), "m1"), new CosmosItemIdentity(pk("k1"), "absent"));
            equal(container.readMany(identities, JsonNode.class).getResults().size(), 1);
        });
        check("items: all of one logical partition are deleted at once", () -> {
            container.deleteAllItemsByPartitionKey(pk("k3"), null);
            for (int turn = 0; turn < 100 && container.readAllItems(pk("k3"), JsonNode.class).stream().count() > 0; turn += 1) {
                Thread.sleep(50);
            }
            equal(container.readAllItems(pk("k3"), JsonNode.class).stream().count(), 0L);
        });
    }

    static void ids() {
        withDatabase("ids", database -> {
            CosmosContainer container = newContainer(database, "ids", 400);
            for (String id : List.of("plain", "with blank", "Größe", "漢字", "🦊", "a+b", "a%b", "%20", "a&b=c", "a'b\"c", "a;b,c:d", "(a)[b]{c}", "~a!b@c$d^e*f", "trailing.", "i".repeat(255))) {
                check("ids: " + id.substring(0, Math.min(24, id.length())), () -> {
                    container.createItem(item(id, "a"));
                    equal(container.readItem(id, pk("a"), JsonNode.class).getItem().get("id").asText(), id);
                    container.replaceItem(item(id, "a", 1), id, pk("a"), null);
                    container.deleteItem(id, pk("a"), null);
                });
            }
            check("ids: a backslash, or more than 1,023 bytes, is refused", () -> {
                refused(400, () -> container.createItem(item("a\\b", "a")));
                refused(400, () -> container.createItem(item("i".repeat(1024), "a")));
            });
        });
    }
}
