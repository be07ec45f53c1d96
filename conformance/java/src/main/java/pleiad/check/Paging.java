package pleiad.check;

import static pleiad.check.Check.builder;
import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.that;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;

/** Pages of ordered queries whose sort keys are equal many times: each item once, in every order and page size. */
final class Paging {
    private static final int ITEMS = 120;

    private record SortKey(String name, boolean descending) {}

    static void run() {
        withDatabase("paging", database -> {
            CosmosContainer container = newContainer(database, properties(), 30000);
            for (int n = 0; n < ITEMS; n += 1) {
                container.createItem(tied(n));
            }
            List<List<SortKey>> orders = List.of(
                List.of(), up("same"), down("same"), up("tied"), down("tied"), up("mixed"), down("mixed"),
                List.of(new SortKey("tied", false), new SortKey("other", false)), List.of(new SortKey("tied", true), new SortKey("other", true)),
                List.of(new SortKey("tied", false), new SortKey("other", true)), List.of(new SortKey("tied", true), new SortKey("other", false)));
            for (List<SortKey> order : orders) {
                pages(database, container, order);
            }
        });
    }

    private static List<SortKey> up(String name) {
        return List.of(new SortKey(name, false));
    }

    private static List<SortKey> down(String name) {
        return List.of(new SortKey(name, true));
    }

    private static CosmosContainerProperties properties() {
        List<List<CompositePath>> composites = new ArrayList<>();
        for (CompositePathSortOrder second : CompositePathSortOrder.values()) {
            composites.add(List.of(
                new CompositePath().setPath("/tied").setOrder(CompositePathSortOrder.ASCENDING), new CompositePath().setPath("/other").setOrder(second)));
        }
        IndexingPolicy policy = new IndexingPolicy().setIncludedPaths(List.of(new IncludedPath("/*")));
        policy.setCompositeIndexes(composites);
        return new CosmosContainerProperties("paging", "/pk").setIndexingPolicy(policy);
    }

    /** Values of each type, most of them many times; every sixth item lacks the property. */
    private static ObjectNode tied(int n) {
        ObjectNode value = item(String.format("p%03d", n), "k" + n % 9).put("tied", n % 3).put("other", n % 2).put("same", "x");
        return switch (n % 6) {
            case 0 -> value;
            case 1 -> value.putNull("mixed");
            case 2 -> value.put("mixed", n % 12 == 2);
            case 3 -> value.put("mixed", n % 4);
            default -> value.put("mixed", List.of("", "a", "ä", "b").get(n / 6 % 4));
        };
    }

    private static void pages(CosmosDatabase database, CosmosContainer container, List<SortKey> order) {
        String by = order.isEmpty() ? "" : " ORDER BY " + String.join(", ", order.stream().map(each -> "c." + each.name + (each.descending ? " DESC" : " ASC")).toList());
        String text = "SELECT * FROM c" + by;
        List<String> whole = new ArrayList<>();
        for (int size : List.of(1000, 1, 7, 40)) {
            check("paging:" + by + " in pages of " + size, () -> {
                List<JsonNode> found = new ArrayList<>();
                for (FeedResponse<JsonNode> page : container.queryItems(text, new CosmosQueryRequestOptions(), JsonNode.class).iterableByPage(size)) {
                    found.addAll(page.getResults());
                    that(found.size() <= ITEMS, "more items than there are");
                }
                List<String> names = inOrder(found, order);
                if (whole.isEmpty()) {
                    whole.addAll(names);
                }
                if (!order.isEmpty()) {
                    equal(names, whole);
                }
            });
        }
        check("paging:" + by + ", each page by a client that has seen nothing yet", () -> {
            List<String> names = inOrder(resumed(database, container, text, null, 17), order);
            if (!order.isEmpty()) {
                equal(names, whole);
            }
        });
        check("paging:" + by + " in one logical partition", () -> {
            var options = new CosmosQueryRequestOptions().setPartitionKey(pk("k4"));
            List<JsonNode> all = Check.query(container, text, options);
            equal(all.size(), 13);
            equal(resumed(database, container, text, pk("k4"), 4), all);
        });
    }

    private static List<JsonNode> resumed(CosmosDatabase database, CosmosContainer container, String text, PartitionKey key, int size) {
        List<JsonNode> found = new ArrayList<>();
        String token = null;
        do {
            try (CosmosClient client = builder().buildClient()) {
                CosmosContainer again = client.getDatabase(database.getId()).getContainer(container.getId());
                var options = new CosmosQueryRequestOptions().setPartitionKey(key);
                FeedResponse<JsonNode> page = again.queryItems(text, options, JsonNode.class).iterableByPage(token, size).iterator().next();
                found.addAll(page.getResults());
                token = page.getContinuationToken();
                that(found.size() <= ITEMS, "more items than there are");
            }
        } while (token != null);
        return found;
    }

    /** Requires every item once and in the order asked for, and returns the ids. */
    private static List<String> inOrder(List<JsonNode> found, List<SortKey> order) {
        List<String> names = found.stream().map(each -> each.get("id").asText()).toList();
        that(names.size() == ITEMS && new HashSet<>(names).size() == ITEMS, "%d items, %d distinct", names.size(), new HashSet<>(names).size());
        for (int n = 1; n < found.size(); n += 1) {
            for (SortKey each : order) {
                int compared = compare(found.get(n - 1).get(each.name), found.get(n).get(each.name)) * (each.descending ? -1 : 1);
                that(compared <= 0, "%s stands before %s", found.get(n - 1), found.get(n));
                if (compared < 0) {
                    break;
                }
            }
        }
        return names;
    }

    private static int rank(JsonNode value) {
        return value == null ? 0 : value.isNull() ? 1 : value.isBoolean() ? 2 : value.isNumber() ? 3 : 4;
    }

    private static int compare(JsonNode left, JsonNode right) {
        if (rank(left) != rank(right)) {
            return rank(left) - rank(right);
        }
        return switch (rank(left)) {
            case 2 -> Boolean.compare(left.asBoolean(), right.asBoolean());
            case 3 -> Double.compare(left.asDouble(), right.asDouble());
            case 4 -> left.asText().compareTo(right.asText());
            default -> 0;
        };
    }
}
