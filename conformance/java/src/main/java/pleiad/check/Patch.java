package pleiad.check;

import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.json;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.refused;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;

/** Parts of items. */
final class Patch {
    static void run() {
        withDatabase("patch", database -> {
            CosmosContainer container = newContainer(database, "patch", 400);
            container.createItem(item("1", "a", 1).set("list", json("[1,3]")));
            check("patch: every operation at once", () -> {
                CosmosPatchOperations operations = CosmosPatchOperations.create().add("/list/1", 2).add("/list/-", 4)
                    .set("/deep", json("{'x':true}")).increment("/n", 41).increment("/n", 0.5);
                JsonNode found = container.patchItem("1", pk("a"), operations, JsonNode.class).getItem();
                equal(found.get("list"), json("[1,2,3,4]"));
                equal(found.get("n").asDouble(), 42.5);
                equal(found.get("deep"), json("{'x':true}"));
            });
            check("patch: replace, remove and move", () -> {
                var operations = CosmosPatchOperations.create().replace("/deep/x", "y").move("/deep/x", "/moved").remove("/list/0");
                JsonNode found = container.patchItem("1", pk("a"), operations, JsonNode.class).getItem();
                equal(found.get("moved").asText(), "y");
                equal(found.get("list"), json("[2,3,4]"));
            });
            check("patch: a condition that does not hold is 412", () -> {
                var condition = new CosmosPatchItemRequestOptions().setFilterPredicate("FROM c WHERE c.n = 0");
                refused(412, () -> container.patchItem("1", pk("a"), CosmosPatchOperations.create().set("/n", 7), condition, JsonNode.class));
                condition.setFilterPredicate("FROM c WHERE c.n > 42");
                equal(container.patchItem("1", pk("a"), CosmosPatchOperations.create().set("/n", 7), condition, JsonNode.class).getItem().get("n").asInt(), 7);
            });
            check("patch: one operation that cannot be done undoes all", () -> {
                refused(400, () -> container.patchItem("1", pk("a"), CosmosPatchOperations.create().set("/n", 1).remove("/absent"), JsonNode.class));
                equal(container.readItem("1", pk("a"), JsonNode.class).getItem().get("n").asInt(), 7);
            });
            check("patch: the id and the partition key cannot be changed", () -> {
                for (String path : List.of("/id", "/pk")) {
                    refused(400, () -> container.patchItem("1", pk("a"), CosmosPatchOperations.create().set(path, "other"), JsonNode.class));
                }
            });
            check("patch: an item that is not there, or another etag, is refused", () -> {
                refused(404, () -> container.patchItem("absent", pk("a"), CosmosPatchOperations.create().set("/n", 1), JsonNode.class));
                var options = new CosmosPatchItemRequestOptions();
                options.setIfMatchETag("\"other\"");
                refused(412, () -> container.patchItem("1", pk("a"), CosmosPatchOperations.create().set("/n", 1), options, JsonNode.class));
            });
        });
    }
}
