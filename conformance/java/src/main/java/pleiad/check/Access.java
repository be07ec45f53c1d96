package pleiad.check;

import static pleiad.check.Check.JSON;
import static pleiad.check.Check.KEY;
import static pleiad.check.Check.READ_ONLY_KEY;
import static pleiad.check.Check.builder;
import static pleiad.check.Check.check;
import static pleiad.check.Check.connecting;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.query;
import static pleiad.check.Check.refused;
import static pleiad.check.Check.that;
import static pleiad.check.Check.withDatabase;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncUser;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PermissionMode;
import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.Callable;
import reactor.core.publisher.Mono;

/** Who may do what: keys, resource tokens and Entra tokens. */
final class Access {
    // Only the asynchronous client has permissions.
    private static final CosmosAsyncClient ASYNC = builder().buildAsyncClient();

    static void run() {
        withDatabase("access", database -> {
            CosmosContainer container = newContainer(database, "guarded", 400);
            container.createItem(item("1", "a"));
            container.createItem(item("1", "b"));
            keys(database);
            users(database);
            tokens(database);
            entra(database);
        });
    }

    private static CosmosContainer guarded(CosmosClient client, CosmosDatabase database) {
        return client.getDatabase(database.getId()).getContainer("guarded");
    }

    /** A client asks for the account when it is built, and wraps the refusal. */
    private static void unauthorized(Callable<CosmosClient> build) throws Exception {
        try {
            build.call().close();
        } catch (RuntimeException refusal) {
            that(String.valueOf(refusal.getMessage()).contains("Unauthorized"), "%s", refusal);
            return;
        }
        throw new AssertionError("the client was built");
    }

    private static void keys(CosmosDatabase database) {
        check("access: another key is refused", () -> {
            String stranger = Base64.getEncoder().encodeToString("a key that is not the account's".getBytes(StandardCharsets.UTF_8));
            unauthorized(() -> builder(stranger).buildClient());
        });
        check("access: the key for reads reads and queries, and writes nothing", () -> {
            try (CosmosClient client = builder(READ_ONLY_KEY).buildClient()) {
                CosmosContainer reader = guarded(client, database);
                equal(reader.readItem("1", pk("a"), JsonNode.class).getStatusCode(), 200);
                equal(query(reader, "SELECT * FROM c").size(), 2);
                refused(403, () -> reader.createItem(item("2", "a")));
                refused(403, () -> reader.deleteItem("1", pk("a"), null));
                refused(403, () -> reader.patchItem("1", pk("a"), CosmosPatchOperations.create().set("/n", 1), JsonNode.class));
                refused(403, () -> client.createDatabase("never"));
            }
        });
    }

    private static void users(CosmosDatabase database) {
        check("users and permissions: create, read, list, replace, delete", () -> {
            database.createUser(new CosmosUserProperties().setId("ada"));
            refused(409, () -> database.createUser(new CosmosUserProperties().setId("ada")));
            equal(database.getUser("ada").read().getProperties().getId(), "ada");
            equal(database.readAllUsers().stream().count(), 1L);
            var permission = new CosmosPermissionProperties().setId("p").setPermissionMode(PermissionMode.READ).setContainerName("guarded");
            CosmosAsyncUser ada = ASYNC.getDatabase(database.getId()).getUser("ada");
            var created = ada.createPermission(permission, null).block().getProperties();
            that(created.getToken().startsWith("type=resource"), "no token");
            equal(ada.readAllPermissions().toStream().count(), 1L);
            var replaced = ada.getPermission("p").replace(created.setPermissionMode(PermissionMode.ALL), null).block();
            equal(replaced.getProperties().getPermissionMode(), PermissionMode.ALL);
            ada.getPermission("p").delete(null).block();
            database.getUser("ada").delete();
            refused(404, () -> database.getUser("ada").read());
        });
    }

    private static void tokens(CosmosDatabase database) {
        database.createUser(new CosmosUserProperties().setId("holder"));
        check("tokens: one for reads reads, and writes nothing", () -> {
            try (CosmosClient client = holder(database, "read", PermissionMode.READ)) {
                CosmosContainer reader = guarded(client, database);
                equal(reader.readItem("1", pk("a"), JsonNode.class).getStatusCode(), 200);
                equal(query(reader, "SELECT * FROM c").size(), 2);
                refused(403, () -> reader.createItem(item("3", "a")));
            }
        });
        check("tokens: one for everything writes items, and no database", () -> {
            try (CosmosClient client = holder(database, "all", PermissionMode.ALL)) {
                guarded(client, database).upsertItem(item("3", "a"));
                refused(403, () -> client.createDatabase("never"));
            }
        });
    }

    private static CosmosClient holder(CosmosDatabase database, String id, PermissionMode mode) {
        var permission = new CosmosPermissionProperties().setId(id).setPermissionMode(mode).setContainerName("guarded");
        var created = ASYNC.getDatabase(database.getId()).getUser("holder").createPermission(permission, null).block().getProperties();
        return connecting().resourceToken(created.getToken()).contentResponseOnWriteEnabled(true).buildClient();
    }

    /** What Entra would hand out, made as the emulators take it: the account key stands where the signature does. */
    private static TokenCredential credential(String secret) {
        OffsetDateTime end = OffsetDateTime.now().plusHours(1);
        long now = OffsetDateTime.now().toEpochSecond();
        String header = JSON.createObjectNode().put("typ", "JWT").put("alg", "RS256").put("x5t", "CosmosEmulatorPrimaryMaster").put("kid", "CosmosEmulatorPrimaryMaster").toString();
        String claims = JSON.createObjectNode().put("aud", "https://localhost.localhost").put("iss", "https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984")
            .put("iat", now).put("nbf", now).put("exp", end.toEpochSecond()).put("appid", "localhost").put("oid", "96313034-4739-43cb-93cd-74193adbe5b6")
            .put("tid", "EmulatorFederation").put("scp", "user_impersonation").put("ver", "1.0").put("sub", "localhost").toString();
        Base64.Encoder encoder = Base64.getUrlEncoder().withoutPadding();
        String token = String.join(".", List.of(header, claims, secret).stream().map(each -> encoder.encodeToString(each.getBytes(StandardCharsets.UTF_8))).toList());
        return request -> Mono.just(new AccessToken(token, end));
    }

    private static void entra(CosmosDatabase database) {
        check("access: an Entra token reads and writes items, and a forged one does not", () -> {
            var known = connecting().credential(credential(KEY));
            try (CosmosClient client = known.buildClient()) {
                guarded(client, database).upsertItem(item("entra", "a"), pk("a"), null);
                equal(guarded(client, database).readItem("entra", pk("a"), JsonNode.class).getStatusCode(), 200);
            }
            var forged = connecting().credential(credential("forged"));
            unauthorized(forged::buildClient);
        });
    }
}
