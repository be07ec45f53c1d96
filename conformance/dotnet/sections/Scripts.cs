// Stored procedures, triggers and user-defined functions.

using System.Net;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Scripts;
using Newtonsoft.Json.Linq;

static class Scripts
{
    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "scripts", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk");
            await Procedures(container);
            await Triggers(container);
            await Functions(container);
        });
    }

    static async Task Procedures(Container container)
    {
        var scripts = container.Scripts;
        await Check.That("procedure: create, read, replace, list", async () =>
        {
            var made = await scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("p", "function p() { return 1; }"));
            Check.Equal(HttpStatusCode.Created, made.StatusCode);
            Check.Equal("p", (await scripts.ReadStoredProcedureAsync("p")).Resource.Id);
            await scripts.ReplaceStoredProcedureAsync(new StoredProcedureProperties(
                "p", "function p(a, b) { getContext().getResponse().setBody({ sum: a + b }); }"));
            var all = await scripts.GetStoredProcedureQueryIterator<StoredProcedureProperties>().All();
            Check.Same(["p"], all.Select(each => each.Id));
        });
        await Check.That("procedure: one that exists", () => Check.Refused(
            HttpStatusCode.Conflict, () => scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("p", "function p() {}"))));
        await Check.That("procedure: run with arguments", async () =>
        {
            var answer = await scripts.ExecuteStoredProcedureAsync<JObject>("p", "a".Pk(), [1, 2]);
            Check.Equal(3, (int)answer.Resource["sum"]!);
            Check.True(answer.RequestCharge > 0, "it has a charge");
        });
        await Check.That("procedure: writes all or nothing", async () =>
        {
            await scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("w", """
                function w(fail) {
                    var c = getContext().getCollection();
                    c.createDocument(c.getSelfLink(), { id: "s1", pk: "a" });
                    c.createDocument(c.getSelfLink(), { id: "s2", pk: "a" }, function (error) {
                        if (error) throw error;
                        if (fail) throw new Error("wanted to fail");
                        getContext().getResponse().setBody("done");
                    });
                }
                """));
            await Check.Refused(HttpStatusCode.BadRequest, () => scripts.ExecuteStoredProcedureAsync<string>("w", "a".Pk(), [true]));
            await Check.Refused(HttpStatusCode.NotFound, () => container.ReadItemAsync<JObject>("s1", "a".Pk()));
            Check.Equal("done", (await scripts.ExecuteStoredProcedureAsync<string>("w", "a".Pk(), [false])).Resource);
            Check.Equal("s2", (string)(await container.ReadItemAsync<JObject>("s2", "a".Pk())).Resource["id"]!);
        });
        await Check.That("procedure: its log", async () =>
        {
            await scripts.CreateStoredProcedureAsync(new StoredProcedureProperties("log", "function log() { console.log('said ü'); }"));
            var answer = await scripts.ExecuteStoredProcedureAsync<string>(
                "log", "a".Pk(), [], new StoredProcedureRequestOptions { EnableScriptLogging = true });
            Check.Equal("said ü", answer.ScriptLog.Trim());
        });
        await Check.That("procedure: streams", async () =>
        {
            using var answer = await scripts.ExecuteStoredProcedureStreamAsync("p", "[20,22]".Stream(), "a".Pk());
            Check.Equal("""{"sum":42}""", answer.Content.Text());
        });
        await Check.That("procedure: delete", async () =>
        {
            await scripts.DeleteStoredProcedureAsync("p");
            await Check.Refused(HttpStatusCode.NotFound, () => scripts.ExecuteStoredProcedureAsync<JObject>("p", "a".Pk(), []));
        });
    }

    static async Task Triggers(Container container)
    {
        var scripts = container.Scripts;
        await Check.That("triggers: before and after a write", async () =>
        {
            await scripts.CreateTriggerAsync(new TriggerProperties
            {
                Id = "before",
                Body = "function t() { var r = getContext().getRequest(); var b = r.getBody(); b.stamped = true; r.setBody(b); }",
                TriggerOperation = TriggerOperation.All,
                TriggerType = TriggerType.Pre,
            });
            await scripts.CreateTriggerAsync(new TriggerProperties
            {
                Id = "after",
                Body = """
                    function t() {
                        var c = getContext().getCollection();
                        c.createDocument(c.getSelfLink(), { id: getContext().getResponse().getBody().id + "-log", pk: "a" });
                    }
                    """,
                TriggerOperation = TriggerOperation.Create,
                TriggerType = TriggerType.Post,
            });
            var options = new ItemRequestOptions { PreTriggers = ["before"], PostTriggers = ["after"] };
            var answer = await container.CreateItemAsync(new JObject { ["id"] = "t", ["pk"] = "a" }, "a".Pk(), options);
            Check.True((bool)answer.Resource["stamped"]!, "the trigger before it changed the item");
            Check.Equal("t-log", (string)(await container.ReadItemAsync<JObject>("t-log", "a".Pk())).Resource["id"]!);
        });
        await Check.That("triggers: one that throws fails the write", async () =>
        {
            await scripts.CreateTriggerAsync(new TriggerProperties
            {
                Id = "never",
                Body = "function t() { throw new Error('never'); }",
                TriggerOperation = TriggerOperation.All,
                TriggerType = TriggerType.Pre,
            });
            var options = new ItemRequestOptions { PreTriggers = ["never"] };
            await Check.Refused(HttpStatusCode.BadRequest, () => container.CreateItemAsync(new { id = "n", pk = "a" }, "a".Pk(), options));
        });
        await Check.That("triggers: list and delete", async () =>
        {
            Check.Equal(3, (await scripts.GetTriggerQueryIterator<TriggerProperties>().All()).Count);
            await scripts.DeleteTriggerAsync("never");
            await Check.Refused(HttpStatusCode.NotFound, () => scripts.ReadTriggerAsync("never"));
        });
    }

    static async Task Functions(Container container)
    {
        await Check.That("functions: in a query", async () =>
        {
            await container.Scripts.CreateUserDefinedFunctionAsync(new UserDefinedFunctionProperties
            {
                Id = "shout",
                Body = "function shout(s) { return s.toUpperCase() + '!'; }",
            });
            Check.Equal("T!", await container.One<string>("SELECT VALUE udf.shout(c.id) FROM c WHERE c.id = 't'"));
        });
        await Check.That("functions: replace, list, delete", async () =>
        {
            var scripts = container.Scripts;
            await scripts.ReplaceUserDefinedFunctionAsync(new UserDefinedFunctionProperties { Id = "shout", Body = "function shout(s) { return 1; }" });
            Check.Equal(1, (await scripts.GetUserDefinedFunctionQueryIterator<UserDefinedFunctionProperties>().All()).Count);
            await scripts.DeleteUserDefinedFunctionAsync("shout");
            await Check.Refused(HttpStatusCode.NotFound, () => scripts.ReadUserDefinedFunctionAsync("shout"));
        });
    }
}
