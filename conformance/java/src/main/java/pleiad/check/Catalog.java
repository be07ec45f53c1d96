package pleiad.check;

import static pleiad.check.Check.CLIENT;
import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.query;
import static pleiad.check.Check.refused;
import static pleiad.check.Check.that;
import static pleiad.check.Check.told;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.ComputedProperty;
import com.azure.cosmos.models.ConflictResolutionPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosContainerRequestOptions;
import com.azure.cosmos.models.CosmosDatabaseProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingMode;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.SpatialSpec;
import com.azure.cosmos.models.SpatialType;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import java.util.List;

/** Databases, containers, their policies and their throughput. */
final class Catalog {
    static void run() {
        withDatabase("catalog", database -> {
            databases(database);
            containers(database);
            keys(database);
            policies(database);
            throughput(database);
        });
        sharedThroughput();
    }

    private static void databases(CosmosDatabase database) {
        check("databases: read tells id, etag and rid", () -> {
            CosmosDatabaseProperties read = database.read().getProperties();
            equal(read.getId(), database.getId());
            that(read.getETag() != null && read.getTimestamp() != null, "no etag or time");
        });
        check("databases: a second one of the name is a conflict, and create-if-not-exists is not", () -> {
            refused(409, () -> CLIENT.createDatabase(database.getId()));
            equal(CLIENT.createDatabaseIfNotExists(database.getId()).getStatusCode(), 200);
        });
        check("databases: one that is not there is not found", () -> refused(404, () -> CLIENT.getDatabase("absent").read()));
        check("databases: are listed and queried", () -> {
            that(CLIENT.readAllDatabases().stream().anyMatch(each -> each.getId().equals(database.getId())), "not listed");
            String text = "SELECT * FROM c WHERE c.id = '" + database.getId() + "'";
            equal(CLIENT.queryDatabases(text, new CosmosQueryRequestOptions()).stream().count(), 1L);
        });
    }

    private static void containers(CosmosDatabase database) {
        check("containers: create, read, replace, list, query, delete", () -> {
            equal(database.createContainer("c", "/pk").getStatusCode(), 201);
            CosmosContainer container = database.getContainer("c");
            CosmosContainerProperties properties = container.read().getProperties();
            properties.setDefaultTimeToLiveInSeconds(3600);
            equal(container.replace(properties).getProperties().getDefaultTimeToLiveInSeconds(), 3600);
            equal(container.read().getProperties().getDefaultTimeToLiveInSeconds(), 3600);
            equal(database.readAllContainers().stream().count(), 1L);
            equal(database.queryContainers("SELECT * FROM c WHERE c.id = 'c'").stream().count(), 1L);
            equal(container.delete().getStatusCode(), 204);
            refused(404, container::read);
        });
        check("containers: a second one of the name is a conflict, and create-if-not-exists is not", () -> {
            database.createContainer("twice", "/pk");
            refused(409, () -> database.createContainer("twice", "/pk"));
            equal(database.createContainerIfNotExists("twice", "/pk").getStatusCode(), 200);
        });
        check("containers: quota and usage come when they are asked for", () -> {
            CosmosContainerRequestOptions options = new CosmosContainerRequestOptions().setQuotaInfoEnabled(true);
            var header = database.getContainer("twice").read(options).getResponseHeaders();
            that(header.containsKey("x-ms-resource-quota") && header.containsKey("x-ms-resource-usage"), "%s", header);
        });
        check("containers: a replacement with another etag is refused", () -> {
            CosmosContainer container = database.getContainer("twice");
            CosmosContainerProperties properties = container.read().getProperties();
            CosmosContainerRequestOptions options = new CosmosContainerRequestOptions().setIfMatchETag("\"other\"");
            refused(412, () -> container.replace(properties, options));
        });
        check("containers: feed ranges cover a container of several physical partitions", () -> {
            CosmosContainer container = newContainer(database, "wide", 30000);
            that(container.getFeedRanges().size() >= 3, "%d ranges", container.getFeedRanges().size());
        });
    }

    private static void keys(CosmosDatabase database) {
        for (PartitionKeyDefinitionVersion version : PartitionKeyDefinitionVersion.values()) {
            check("keys: definition of version " + version, () -> {
                PartitionKeyDefinition definition = new PartitionKeyDefinition().setPaths(List.of("/pk")).setVersion(version);
                CosmosContainer container = newContainer(database, new CosmosContainerProperties("version" + version, definition), 20000);
                for (int n = 0; n < 20; n += 1) {
                    container.createItem(item("i" + n, "k" + n, n));
                }
                equal(query(container, "SELECT * FROM c").size(), 20);
                equal(told(query(container, "SELECT VALUE c.n FROM c WHERE c.pk = 'k7'")), "[7]");
                that(version == PartitionKeyDefinitionVersion.V1
                    || container.read().getProperties().getPartitionKeyDefinition().getVersion() == version, "another version");
            });
        }
        check("keys: of three levels, whole and by a prefix", () -> {
            PartitionKeyDefinition definition = new PartitionKeyDefinition().setKind(PartitionKind.MULTI_HASH)
                .setPaths(List.of("/a", "/b", "/c")).setVersion(PartitionKeyDefinitionVersion.V2);
            CosmosContainer container = newContainer(database, new CosmosContainerProperties("levels", definition), 20000);
            for (int n = 0; n < 12; n += 1) {
                var whole = new PartitionKeyBuilder().add("t" + n % 2).add("u" + n % 3).add((double) n).build();
                var value = Check.JSON.createObjectNode().put("id", "i" + n).put("a", "t" + n % 2).put("b", "u" + n % 3).put("c", n);
                container.createItem(value, whole, null);
                equal(container.readItem("i" + n, whole, com.fasterxml.jackson.databind.JsonNode.class).getItem().get("c").asInt(), n);
            }
            var prefix = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKeyBuilder().add("t0").build());
            equal(query(container, "SELECT * FROM c", prefix).size(), 6);
            var longer = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKeyBuilder().add("t0").add("u0").build());
            equal(query(container, "SELECT * FROM c", longer).size(), 2);
        });
    }

    private static void policies(CosmosDatabase database) {
        check("policies: indexes of every kind come back as they were given", () -> {
            IndexingPolicy policy = new IndexingPolicy().setIndexingMode(IndexingMode.CONSISTENT)
                .setIncludedPaths(List.of(new IncludedPath("/*"))).setExcludedPaths(List.of(new ExcludedPath("/hidden/?")));
            policy.setSpatialIndexes(List.of(new SpatialSpec().setPath("/place/*").setSpatialTypes(List.of(SpatialType.values()))));
            policy.setCompositeIndexes(List.of(List.of(
                new CompositePath().setPath("/a").setOrder(CompositePathSortOrder.ASCENDING),
                new CompositePath().setPath("/b").setOrder(CompositePathSortOrder.DESCENDING))));
            CosmosContainer container = newContainer(database, new CosmosContainerProperties("indexed", "/pk").setIndexingPolicy(policy), 400);
            IndexingPolicy read = container.read().getProperties().getIndexingPolicy();
            equal(read.getCompositeIndexes().get(0).get(1).getOrder(), CompositePathSortOrder.DESCENDING);
            equal(read.getSpatialIndexes().get(0).getSpatialTypes().size(), 4);
            that(read.getExcludedPaths().stream().anyMatch(each -> each.getPath().equals("/hidden/?")), "an excluded path is missing");
        });
        check("policies: unique keys are kept and obeyed", () -> {
            var properties = new CosmosContainerProperties("unique", "/pk")
                .setUniqueKeyPolicy(new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/mail")))));
            CosmosContainer container = newContainer(database, properties, 400);
            container.createItem(item("1", "a").put("mail", "m"));
            refused(409, () -> container.createItem(item("2", "a").put("mail", "m")));
            container.createItem(item("2", "b").put("mail", "m"));
        });
        check("policies: computed properties are queried", () -> {
            var properties = new CosmosContainerProperties("computed", "/pk");
            properties.setComputedProperties(List.of(new ComputedProperty("lower", "SELECT VALUE LOWER(c.name) FROM c")));
            CosmosContainer container = newContainer(database, properties, 400);
            container.createItem(item("1", "a").put("name", "ADA"));
            equal(told(query(container, "SELECT VALUE c.lower FROM c WHERE c.lower = 'ada'")), "['ada']");
        });
        check("policies: conflict resolution by the last writer", () -> {
            var properties = new CosmosContainerProperties("conflicts", "/pk")
                .setConflictResolutionPolicy(ConflictResolutionPolicy.createLastWriterWinsPolicy("/rank"));
            CosmosContainer container = newContainer(database, properties, 400);
            equal(container.read().getProperties().getConflictResolutionPolicy().getConflictResolutionPath(), "/rank");
        });
    }

    private static void throughput(CosmosDatabase database) {
        check("throughput: manual is read and replaced", () -> {
            CosmosContainer container = newContainer(database, "manual", 400);
            equal(container.readThroughput().getProperties().getManualThroughput(), 400);
            equal(container.readThroughput().getMinThroughput(), 400);
            container.replaceThroughput(ThroughputProperties.createManualThroughput(500));
            equal(container.readThroughput().getProperties().getManualThroughput(), 500);
            refused(400, () -> container.replaceThroughput(ThroughputProperties.createManualThroughput(450)));
        });
        check("throughput: autoscale is read and replaced", () -> {
            database.createContainer(new CosmosContainerProperties("autoscale", "/pk"), ThroughputProperties.createAutoscaledThroughput(4000));
            CosmosContainer container = database.getContainer("autoscale");
            equal(container.readThroughput().getProperties().getAutoscaleMaxThroughput(), 4000);
            container.replaceThroughput(ThroughputProperties.createAutoscaledThroughput(5000));
            equal(container.readThroughput().getProperties().getAutoscaleMaxThroughput(), 5000);
        });
    }

    private static void sharedThroughput() {
        check("throughput: of a database, shared by its containers", () -> {
            CLIENT.createDatabase("check-shared", ThroughputProperties.createManualThroughput(400));
            CosmosDatabase database = CLIENT.getDatabase("check-shared");
            try {
                database.createContainer("one", "/pk");
                database.replaceThroughput(ThroughputProperties.createManualThroughput(600));
                equal(database.readThroughput().getProperties().getManualThroughput(), 600);
                refused(400, () -> database.getContainer("one").readThroughput());
            } finally {
                database.delete();
            }
        });
    }
}
