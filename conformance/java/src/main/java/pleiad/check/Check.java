package pleiad.check;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.function.Consumer;

/** One check is one line of output. A check that throws has failed; the rest of its section still runs. */
final class Check {
    interface Action {
        void run() throws Exception;
    }

    static final ObjectMapper JSON = new ObjectMapper();
    static final String ENDPOINT = System.getenv("ACCOUNT_HOST");
    static final String MODE = System.getenv().getOrDefault("CONNECTION_MODE", "gateway");
    static final String KEY = System.getenv("ACCOUNT_KEY");
    static final String READ_ONLY_KEY = System.getenv("ACCOUNT_READ_ONLY_KEY");
    static final CosmosClient CLIENT = builder().buildClient();
    static int passed;
    static int failed;

    static void check(String name, Action action) {
        try {
            action.run();
            passed += 1;
            System.out.println("ok    " + name);
        } catch (Throwable error) {
            failed += 1;
            System.out.println("FAIL  " + name + ": " + describe(error));
        }
    }

    /** What a section sets up for its checks may fail too; then none of the rest can be checked. */
    static void setUp(String name, Action section) {
        try {
            section.run();
        } catch (Throwable error) {
            failed += 1;
            System.out.println("FAIL  " + name + ": could not be set up: " + describe(error));
        }
    }

    static String describe(Throwable error) {
        String status = error instanceof CosmosException refusal ? "[" + refusal.getStatusCode() + "/" + refusal.getSubStatusCode() + "] " : "";
        String text = (error instanceof CosmosException refusal ? refusal.getShortMessage() : String.valueOf(error)).replaceAll("\\s+", " ");
        return (status + text).substring(0, Math.min(400, (status + text).length()));
    }

    static void that(boolean holds, String text, Object... values) {
        if (!holds) {
            throw new AssertionError(String.format(text, values));
        }
    }

    static void equal(Object found, Object expected) {
        that(Objects.equals(found, expected), "%s instead of %s", found, expected);
    }

    /** Requires that the service refuses the call with this status, and returns its error. */
    static CosmosException refused(int status, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (CosmosException refusal) {
            that(refusal.getStatusCode() == status, "expected %d: %s", status, describe(refusal));
            return refusal;
        }
        throw new AssertionError("expected a refusal with " + status);
    }

    static CosmosClientBuilder builder() {
        return builder(KEY);
    }

    static CosmosClientBuilder builder(String key) {
        return connecting().key(key).contentResponseOnWriteEnabled(true);
    }

    /** A client in the mode of the run that has yet to be told who it is; what is told nothing is in direct mode. */
    static CosmosClientBuilder connecting() {
        CosmosClientBuilder made = new CosmosClientBuilder().endpoint(ENDPOINT).consistencyLevel(ConsistencyLevel.SESSION);
        return MODE.equals("gateway") ? made.gatewayMode() : made;
    }

    /** Runs the action with a database of its own, deleted afterwards. */
    static void withDatabase(String label, Consumer<CosmosDatabase> action) {
        String id = "check-" + label + "-" + UUID.randomUUID();
        CLIENT.createDatabase(id);
        CosmosDatabase database = CLIENT.getDatabase(id);
        try {
            action.accept(database);
        } finally {
            database.delete();
        }
    }

    static CosmosContainer newContainer(CosmosDatabase database, CosmosContainerProperties properties, int throughput) {
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(properties.getId());
    }

    static CosmosContainer newContainer(CosmosDatabase database, String id, int throughput) {
        return newContainer(database, new CosmosContainerProperties(id, "/pk"), throughput);
    }

    static ObjectNode item(String id, String pk) {
        return JSON.createObjectNode().put("id", id).put("pk", pk);
    }

    static ObjectNode item(String id, String pk, int n) {
        return item(id, pk).put("n", n);
    }

    static JsonNode json(String text) {
        try {
            return JSON.readTree(text.replace('\'', '"'));
        } catch (Exception error) {
            throw new IllegalArgumentException(error);
        }
    }

    static PartitionKey pk(String value) {
        return new PartitionKey(value);
    }

    static List<JsonNode> query(CosmosContainer container, String text) {
        return query(container, text, new CosmosQueryRequestOptions());
    }

    static List<JsonNode> query(CosmosContainer container, String text, CosmosQueryRequestOptions options) {
        List<JsonNode> found = new ArrayList<>();
        container.queryItems(text, options, JsonNode.class).forEach(found::add);
        return found;
    }

    /** The results as one JSON text, with single quotes. */
    static String told(List<JsonNode> found) {
        return found.toString().replace('"', '\'').replace(", ", ",");
    }
}
