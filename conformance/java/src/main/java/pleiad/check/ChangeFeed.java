package pleiad.check;

import static pleiad.check.Check.builder;
import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.that;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/** The change feed, pulled page by page and pushed by a processor. */
final class ChangeFeed {
    /** What was read, and the token to go on with. */
    record Read(List<JsonNode> items, String token) {}

    static Read read(CosmosContainer container, CosmosChangeFeedRequestOptions options) {
        return read(container, options, Integer.MAX_VALUE);
    }

    static Read read(CosmosContainer container, CosmosChangeFeedRequestOptions options, int pagesMost) {
        int pages = 0;
        List<JsonNode> found = new ArrayList<>();
        String token = null;
        for (FeedResponse<JsonNode> page : container.queryChangeFeed(options, JsonNode.class).iterableByPage()) {
            found.addAll(page.getResults());
            token = page.getContinuationToken();
            pages += 1;
            if (pages == pagesMost) {
                break;
            }
            that(found.size() < 100_000, "the change feed does not end");
        }
        return new Read(found, token);
    }

    private static CosmosChangeFeedRequestOptions beginning(FeedRange range) {
        return CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range);
    }

    static void run() {
        withDatabase("changefeed", database -> {
            CosmosContainer container = newContainer(database, "feed", 30000);
            for (int n = 0; n < 50; n += 1) {
                container.createItem(item("f" + n, "k" + n % 10, n));
            }
            for (int size : List.of(1, 7, 100)) {
                check("change feed: of the whole container in pages of " + size, () -> {
                    var found = read(container, beginning(FeedRange.forFullRange()).setMaxItemCount(size)).items;
                    equal(found.size(), 50);
                    equal(found.stream().map(each -> each.get("n").asInt()).distinct().count(), 50L);
                });
            }
            check("change feed: each feed range tells its own, together all", () -> {
                int all = 0;
                for (FeedRange range : container.getFeedRanges()) {
                    all += read(container, beginning(range)).items.size();
                }
                equal(all, 50);
            });
            check("change feed: of one logical partition, in the order of the changes", () ->
                equal(read(container, beginning(FeedRange.forLogicalPartition(pk("k3")))).items.stream().map(each -> each.get("n").asInt()).toList(),
                    List.of(3, 13, 23, 33, 43)));
            goesOn(database, container);
            check("change feed: from now there is nothing until something changes", () -> {
                Read before = read(container, CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()));
                equal(before.items.size(), 0);
                container.upsertItem(item("now", "now", 300));
                var after = read(container, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(before.token)).items;
                equal(after.stream().map(each -> each.get("n").asInt()).toList(), List.of(300));
            });
            check("change feed: from a time in the past there is everything", () -> {
                Instant earlier = Instant.now().minus(Duration.ofHours(1));
                equal(read(container, CosmosChangeFeedRequestOptions.createForProcessingFromPointInTime(earlier, FeedRange.forFullRange())).items.size(), 51);
            });
            allVersions(database);
        });
    }

    private static void goesOn(CosmosDatabase database, CosmosContainer container) {
        check("change feed: goes on from its token with what is new, in a client that has seen nothing yet", () -> {
            String token = read(container, beginning(FeedRange.forFullRange())).token;
            container.upsertItem(item("f3", "k3", 103));
            container.createItem(item("new", "new", 200));
            container.deleteItem("f4", pk("k4"), null);
            try (CosmosClient client = builder().buildClient()) {
                CosmosContainer again = client.getDatabase(database.getId()).getContainer(container.getId());
                var found = read(again, CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(token)).items;
                equal(Set.copyOf(found.stream().map(each -> each.get("n").asInt()).toList()), Set.of(103, 200));
            }
        });
    }

    private static void allVersions(CosmosDatabase database) {
        check("change feed: all versions and deletes", () -> {
            var properties = new CosmosContainerProperties("versions", "/pk");
            properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
            CosmosContainer container = newContainer(database, properties, 400);
            var now = CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange()).allVersionsAndDeletes();
            String token = read(container, now).token;
            container.createItem(item("1", "a", 1));
            container.upsertItem(item("1", "a", 2));
            container.deleteItem("1", pk("a"), null);
            var options = CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(token).allVersionsAndDeletes();
            var kinds = read(container, options).items.stream().map(each -> each.at("/metadata/operationType").asText()).toList();
            equal(kinds, List.of("create", "replace", "delete"));
        });
    }

    static void until(BooleanSupplier holds, String text) throws InterruptedException {
        for (int turn = 0; turn < 3600 && !holds.getAsBoolean(); turn += 1) {
            Thread.sleep(50);
        }
        that(holds.getAsBoolean(), text);
    }

    static void processor() {
        withDatabase("processor", database -> {
            CosmosContainer container = newContainer(database, "feed", 20000);
            newContainer(database, new CosmosContainerProperties("leases", "/id"), 400);
            for (int n = 0; n < 100; n += 1) {
                container.createItem(item("f" + n, "k" + n % 10, n));
            }
            try (CosmosAsyncClient client = builder().buildAsyncClient()) {
                CosmosAsyncContainer feed = client.getDatabase(database.getId()).getContainer("feed");
                CosmosAsyncContainer leases = client.getDatabase(database.getId()).getContainer("leases");
                latest(container, feed, leases);
                versions(database, client);
            }
        });
    }

    private static ChangeFeedProcessorOptions options(String prefix) {
        return new ChangeFeedProcessorOptions().setStartFromBeginning(true).setFeedPollDelay(Duration.ofMillis(100))
            .setLeaseAcquireInterval(Duration.ofSeconds(1)).setLeaseRenewInterval(Duration.ofSeconds(2)).setLeasePrefix(prefix).setMaxItemCount(20);
    }

    private static void latest(CosmosContainer container, CosmosAsyncContainer feed, CosmosAsyncContainer leases) {
        Set<Integer> seen = ConcurrentHashMap.newKeySet();
        ChangeFeedProcessor processor = new ChangeFeedProcessorBuilder().hostName("one").feedContainer(feed).leaseContainer(leases)
            .options(options("latest")).handleChanges((List<JsonNode> changes) -> changes.forEach(each -> seen.add(each.get("n").asInt()))).buildChangeFeedProcessor();
        processor.start().block();
        check("processor: tells everything that is there", () -> until(() -> seen.size() == 100, "only " + seen.size()));
        check("processor: tells what changes while it runs", () -> {
            container.upsertItem(item("f1", "k1", 1001));
            until(() -> seen.contains(1001), "the change was not told");
        });
        check("processor: has a lease for each range, and knows how far it is", () -> {
            Map<String, Integer> left = processor.getEstimatedLag().block();
            that(left != null && left.size() >= 2 && processor.getCurrentState().block().size() >= 2, "%s", left);
        });
        processor.stop().block();
        check("processor: goes on from its leases under another name", () -> {
            Set<Integer> later = ConcurrentHashMap.newKeySet();
            AtomicInteger change = new AtomicInteger(1002);
            ChangeFeedProcessor next = new ChangeFeedProcessorBuilder().hostName("two").feedContainer(feed).leaseContainer(leases)
                .options(options("latest").setLeaseExpirationInterval(Duration.ofSeconds(3))).handleChanges((List<JsonNode> changes) -> changes.forEach(each -> later.add(each.get("n").asInt())))
                .buildChangeFeedProcessor();
            next.start().block();
            try {
                // A processor that stops may still be told one change: others follow until the next one is told.
                until(() -> {
                    container.upsertItem(item("f2", "k2", change.getAndIncrement()));
                    return later.stream().anyMatch(each -> each >= 1002);
                }, "no change was told");
                that(later.stream().filter(each -> each < 1002).count() < 50, "it began again: %s", later);
            } finally {
                next.stop().block();
            }
        });
        check("processor: goes on through a split", () -> {
            ChangeFeedProcessor next = new ChangeFeedProcessorBuilder().hostName("three").feedContainer(feed).leaseContainer(leases)
                .options(options("split")).handleChanges((List<JsonNode> changes) -> changes.forEach(each -> seen.add(each.get("n").asInt()))).buildChangeFeedProcessor();
            next.start().block();
            try {
                Splits.admin("POST", feed.getDatabase().getId(), feed.getId(), "split", "{}");
                Set<Integer> expected = new HashSet<>();
                for (int n = 2000; n < 2040; n += 1) {
                    container.createItem(item("s" + n, "k" + n % 10, n));
                    expected.add(n);
                }
                until(() -> seen.containsAll(expected), "a change was not told");
            } finally {
                next.stop().block();
            }
        });
    }

    private static void versions(CosmosDatabase database, CosmosAsyncClient client) {
        check("processor: all versions and deletes", () -> {
            var properties = new CosmosContainerProperties("versions", "/pk");
            properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
            CosmosContainer container = newContainer(database, properties, 400);
            List<String> kinds = new java.util.concurrent.CopyOnWriteArrayList<>();
            ChangeFeedProcessor processor = new ChangeFeedProcessorBuilder().hostName("versions").feedContainer(client.getDatabase(database.getId()).getContainer("versions"))
                .leaseContainer(client.getDatabase(database.getId()).getContainer("leases")).options(options("versions").setStartFromBeginning(false))
                .handleAllVersionsAndDeletesChanges((List<ChangeFeedProcessorItem> changes) ->
                    changes.forEach(each -> kinds.add(each.getChangeFeedMetaData().getOperationType().toString().toLowerCase())))
                .buildChangeFeedProcessor();
            processor.start().block();
            try {
                // The feed begins when the lease is first read, so writes go on until one is told.
                for (int n = 0; kinds.isEmpty() && n < 600; n += 1) {
                    container.upsertItem(item("probe", "a", n));
                    Thread.sleep(100);
                }
                container.createItem(item("1", "a", 1));
                container.deleteItem("1", pk("a"), null);
                until(() -> kinds.contains("delete"), "the delete was not told: " + kinds);
            } finally {
                processor.stop().block();
            }
        });
    }
}
