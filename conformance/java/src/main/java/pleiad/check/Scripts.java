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
import com.azure.cosmos.CosmosScripts;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import java.util.List;

/** Stored procedures, triggers and user-defined functions. */
final class Scripts {
    static void run() {
        withDatabase("scripts", database -> {
            CosmosContainer container = newContainer(database, "scripts", 400);
            CosmosScripts scripts = container.getScripts();
            procedures(scripts);
            triggers(container, scripts);
            functions(container, scripts);
        });
    }

    private static void procedures(CosmosScripts scripts) {
        check("procedures: create, read, list, query, replace, delete", () -> {
            scripts.createStoredProcedure(new CosmosStoredProcedureProperties("p", "function () { getContext().getResponse().setBody(1); }"));
            refused(409, () -> scripts.createStoredProcedure(new CosmosStoredProcedureProperties("p", "function () {}")));
            var properties = scripts.getStoredProcedure("p").read().getProperties();
            equal(properties.getId(), "p");
            equal(scripts.readAllStoredProcedures().stream().count(), 1L);
            equal(scripts.queryStoredProcedures("SELECT * FROM c", null).stream().count(), 1L);
            scripts.getStoredProcedure("p").replace(properties.setBody("function () { getContext().getResponse().setBody(2); }"));
            var options = new CosmosStoredProcedureRequestOptions().setPartitionKey(pk("a"));
            equal(scripts.getStoredProcedure("p").execute(null, options).getResponseAsString(), "2");
            scripts.getStoredProcedure("p").delete();
            refused(404, () -> scripts.getStoredProcedure("p").read());
        });
        check("procedures: take arguments, log, and write all or nothing", () -> {
            String body = "function (ids, fails) { console.log('began'); ids.forEach(function (id) { __.createDocument(__.getSelfLink(), { id: id, pk: 'a' }); });"
                + " if (fails) throw new Error('on purpose'); getContext().getResponse().setBody(ids.length); }";
            scripts.createStoredProcedure(new CosmosStoredProcedureProperties("write", body));
            var options = new CosmosStoredProcedureRequestOptions().setPartitionKey(pk("a")).setScriptLoggingEnabled(true);
            var done = scripts.getStoredProcedure("write").execute(List.of(List.of("w1", "w2"), false), options);
            equal(done.getResponseAsString(), "2");
            that(done.getScriptLog().contains("began"), "no log");
            refused(400, () -> scripts.getStoredProcedure("write").execute(List.of(List.of("w3"), true), options));
        });
    }

    private static void triggers(CosmosContainer container, CosmosScripts scripts) {
        check("triggers: create, read, list, replace, use, delete", () -> {
            String body = "function () { var r = getContext().getRequest(); var b = r.getBody(); b.stamped = true; r.setBody(b); }";
            var properties = new CosmosTriggerProperties("stamp", body).setTriggerType(TriggerType.PRE).setTriggerOperation(TriggerOperation.ALL);
            scripts.createTrigger(properties);
            equal(scripts.getTrigger("stamp").read().getProperties().getTriggerType(), TriggerType.PRE);
            equal(scripts.readAllTriggers().stream().count(), 1L);
            scripts.getTrigger("stamp").replace(scripts.getTrigger("stamp").read().getProperties());
            var options = new CosmosItemRequestOptions().setPreTriggerInclude(List.of("stamp"));
            that(container.createItem(item("t", "a"), pk("a"), options).getItem().get("stamped").asBoolean(), "not stamped");
            scripts.getTrigger("stamp").delete();
            refused(400, () -> container.createItem(item("t2", "a"), pk("a"), options));
        });
    }

    private static void functions(CosmosContainer container, CosmosScripts scripts) {
        check("functions: create, read, list, replace, use, delete", () -> {
            scripts.createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("twice", "function (n) { return n * 2; }"));
            equal(scripts.getUserDefinedFunction("twice").read().getProperties().getId(), "twice");
            equal(scripts.readAllUserDefinedFunctions().stream().count(), 1L);
            equal(told(query(container, "SELECT VALUE udf.twice(21)")), "[42]");
            var properties = scripts.getUserDefinedFunction("twice").read().getProperties();
            scripts.getUserDefinedFunction("twice").replace(properties.setBody("function (n) { return n * 3; }"));
            equal(told(query(container, "SELECT VALUE udf.twice(1) FROM c WHERE c.id = 'w1'")), "[3]");
            scripts.getUserDefinedFunction("twice").delete();
        });
    }
}
