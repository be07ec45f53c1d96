package pleiad.check;

import static pleiad.check.Check.check;
import static pleiad.check.Check.equal;
import static pleiad.check.Check.item;
import static pleiad.check.Check.newContainer;
import static pleiad.check.Check.pk;
import static pleiad.check.Check.query;
import static pleiad.check.Check.refused;
import static pleiad.check.Check.that;
import static pleiad.check.Check.told;
import static pleiad.check.Check.withDatabase;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBatchResponse;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;

/** Several operations in one call: all or nothing, or each for itself. */
final class Batches {
    private static List<Integer> statuses(CosmosBatchResponse response) {
        return response.getResults().stream().map(each -> each.getStatusCode()).toList();
    }

    static void batch() {
        withDatabase("batch", database -> {
            CosmosContainer container = newContainer(database, "batch", 400);
            check("batch: every kind of operation, in order", () -> {
                CosmosBatch batch = CosmosBatch.createCosmosBatch(pk("a"));
                batch.createItemOperation(item("1", "a", 1));
                batch.upsertItemOperation(item("2", "a", 2));
                batch.replaceItemOperation("1", item("1", "a", 3));
                batch.patchItemOperation("1", CosmosPatchOperations.create().increment("/n", 5));
                batch.readItemOperation("1");
                batch.deleteItemOperation("2");
                CosmosBatchResponse response = container.executeCosmosBatch(batch);
                equal(statuses(response), List.of(201, 201, 200, 200, 200, 204));
                equal(response.getResults().get(4).getItem(JsonNode.class).get("n").asInt(), 8);
                that(response.getRequestCharge() > 0 && response.getResults().get(0).getETag() != null, "no charge or etag");
            });
            check("batch: one operation that fails undoes all, and is named", () -> {
                CosmosBatch batch = CosmosBatch.createCosmosBatch(pk("a"));
                batch.createItemOperation(item("3", "a"));
                batch.createItemOperation(item("1", "a"));
                CosmosBatchResponse response = container.executeCosmosBatch(batch);
                equal(statuses(response), List.of(424, 409));
                that(!response.isSuccessStatusCode() && response.getRequestCharge() > 0, "no failure, or no charge");
                refused(404, () -> container.readItem("3", pk("a"), JsonNode.class));
            });
            check("batch: etags of operations", () -> {
                String etag = container.readItem("1", pk("a"), JsonNode.class).getETag();
                for (var each : List.of(List.of("\"other\"", 412), List.of(etag, 200))) {
                    CosmosBatch batch = CosmosBatch.createCosmosBatch(pk("a"));
                    var options = new CosmosBatchItemRequestOptions().setIfMatchETag((String) each.get(0));
                    batch.replaceItemOperation("1", item("1", "a", 9), options);
                    equal(statuses(container.executeCosmosBatch(batch)), List.of((Integer) each.get(1)));
                }
            });
            check("batch: a hundred operations pass, a hundred and one are refused", () -> {
                CosmosBatch batch = CosmosBatch.createCosmosBatch(pk("a"));
                for (int n = 0; n < 100; n += 1) {
                    batch.upsertItemOperation(item("many" + n, "a", n));
                }
                equal(container.executeCosmosBatch(batch).size(), 100);
                batch.upsertItemOperation(item("many100", "a", 100));
                refused(400, () -> container.executeCosmosBatch(batch));
            });
        });
    }

    static void bulk() {
        withDatabase("bulk", database -> {
            CosmosContainer container = newContainer(database, "bulk", 20000);
            check("bulk: five hundred creates over all partitions", () -> {
                List<CosmosItemOperation> operations = new ArrayList<>();
                for (int n = 0; n < 500; n += 1) {
                    operations.add(CosmosBulkOperations.getCreateItemOperation(item("b" + n, "k" + n % 50, n), pk("k" + n % 50)));
                }
                int made = 0;
                for (var each : container.executeBulkOperations(operations)) {
                    that(each.getException() == null, "a create failed: %s", each.getException());
                    equal(each.getResponse().getStatusCode(), 201);
                    made += 1;
                }
                equal(made, 500);
                equal(told(query(container, "SELECT VALUE COUNT(1) FROM c")), "[500]");
            });
            check("bulk: every kind of operation, and each failure for itself", () -> {
                List<CosmosItemOperation> operations = List.of(
                    CosmosBulkOperations.getUpsertItemOperation(item("b0", "k0", 1000), pk("k0")),
                    CosmosBulkOperations.getReplaceItemOperation("b1", item("b1", "k1", 1001), pk("k1")),
                    CosmosBulkOperations.getPatchItemOperation("b2", pk("k2"), CosmosPatchOperations.create().increment("/n", 1000)),
                    CosmosBulkOperations.getReadItemOperation("b3", pk("k3")),
                    CosmosBulkOperations.getDeleteItemOperation("b4", pk("k4")),
                    CosmosBulkOperations.getCreateItemOperation(item("b5", "k5", 5), pk("k5")),
                    CosmosBulkOperations.getReadItemOperation("absent", pk("k6")));
                List<Integer> expected = List.of(200, 200, 200, 200, 204, 409, 404);
                for (var each : container.executeBulkOperations(operations)) {
                    int index = operations.indexOf(each.getOperation());
                    equal(each.getResponse().getStatusCode(), expected.get(index));
                }
                equal(container.readItem("b2", pk("k2"), JsonNode.class).getItem().get("n").asInt(), 1002);
            });
        });
    }
}
