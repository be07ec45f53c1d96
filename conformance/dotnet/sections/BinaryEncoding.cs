// The client's binary JSON, which a variable of the environment switches on: the same answers as in text.

using System.Net;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Scripts;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

static class BinaryEncoding
{
    const string Variable = "AZURE_COSMOS_BINARY_ENCODING_ENABLED";
    static readonly PartitionKey Key = "a".Pk();

    // Names and values of every form the client packs: GUIDs, dates, digits, repeated and long strings, numbers of all sizes.
    static readonly string Text = $$"""
        {"id":"b","pk":"a","guid":"00112233-4455-6677-8899-aabbccddeeff","upper":"AABBCCDD-4455-6677-8899-AABBCCDDEEFF",
        "date":"2026-01-02T03:04:05.678Z","hex":"0123456789abcdef0123","HEX":"0123456789ABCDEF0123","again":"again","twice":["again","again"],
        "long":"{{new string('x', 300)}}","words":"the quick brown fox jumps over the lazy dog, again and again and again and again, until dusk",
        "scripts":"Käthe 日本🙂 \" \\ \n","i":[0,31,32,255,256,-1,-32768,65536,-2147483649,9007199254740991],"d":[0.5,-0.1,1E+100,5E-324],
        "t":true,"f":false,"nil":null,"empty":[[],{},""],"type":"Point","coordinates":[1.5,-2.5],"name":{"name":{"name":"deep"} } }
        """;

    /// <summary>The item, its dates as the strings they are.</summary>
    static JObject Item() => JsonConvert.DeserializeObject<JObject>(Text, new JsonSerializerSettings { DateParseHandling = DateParseHandling.None })!;

    public static async Task Run(Server server)
    {
        var before = Environment.GetEnvironmentVariable(Variable);
        Environment.SetEnvironmentVariable(Variable, "True");
        try
        {
            using var client = server.Client();
            await server.WithDatabase(client, "binary", async database =>
            {
                Container container = await database.CreateContainerAsync("c", "/pk", 30_000);
                await Points(container);
                await Many(server, container);
            });
        }
        finally
        {
            Environment.SetEnvironmentVariable(Variable, before);
        }
    }

    static void SameItem(JObject found)
    {
        foreach (var property in Item().Properties())
        {
            var value = found[property.Name];
            // The client's own reader of text makes a date of a string that looks like one.
            var same = JToken.DeepEquals(property.Value, value) || (value?.Type == JTokenType.Date && property.Name == "date");
            Check.True(same, $"{property.Name} is {value}");
        }
    }

    static async Task Points(Container container)
    {
        await Check.That("binary: create", async () =>
            SameItem((await container.CreateItemAsync(Item(), Key)).Resource));
        await Check.That("binary: read", async () => SameItem((await container.ReadItemAsync<JObject>("b", Key)).Resource));
        await Check.That("binary: upsert and replace", async () =>
        {
            SameItem((await container.UpsertItemAsync(Item(), Key)).Resource);
            SameItem((await container.ReplaceItemAsync(Item(), "b", Key)).Resource);
        });
        await Check.That("binary: streams", async () =>
        {
            using var made = await container.UpsertItemStreamAsync(Text.Stream(), Key);
            Check.Equal(HttpStatusCode.OK, made.StatusCode);
            using var read = await container.ReadItemStreamAsync("b", Key);
            SameItem(JObject.Parse(read.Content.Text()));
        });
        await Check.That("binary: it is the same item to a client without it", async () =>
        {
            Environment.SetEnvironmentVariable(Variable, "False");
            try
            {
                SameItem((await container.ReadItemAsync<JObject>("b", Key)).Resource);
            }
            finally
            {
                Environment.SetEnvironmentVariable(Variable, "True");
            }
        });
        await Check.That("binary: patch", async () =>
        {
            var answer = await container.PatchItemAsync<JObject>("b", Key, [PatchOperation.Set("/patched", 1)]);
            SameItem(answer.Resource);
            Check.Equal(1, (int)answer.Resource["patched"]!);
        });
        await Check.That("binary: errors are read", async () =>
        {
            var error = await Check.Refused(HttpStatusCode.Conflict, () => container.CreateItemAsync(Item(), Key));
            Check.True(error.Message.Contains("already exists"), error.Message);
            await Check.Refused(HttpStatusCode.NotFound, () => container.ReadItemAsync<JObject>("missing", Key));
        });
        await Check.That("binary: conditions and no content", async () =>
        {
            var options = new ItemRequestOptions { IfMatchEtag = "\"stale\"" };
            await Check.Refused(HttpStatusCode.PreconditionFailed, () => container.ReplaceItemAsync(Item(), "b", Key, options));
            var quiet = new ItemRequestOptions { EnableContentResponseOnWrite = false };
            Check.Equal(null, (await container.UpsertItemAsync(Item(), Key, quiet)).Resource);
        });
        await Check.That("binary: triggers", async () =>
        {
            await container.Scripts.CreateTriggerAsync(new TriggerProperties
            {
                Id = "stamp",
                Body = "function t() { var r = getContext().getRequest(); var b = r.getBody(); b.stamped = true; r.setBody(b); }",
                TriggerOperation = TriggerOperation.All,
                TriggerType = TriggerType.Pre,
            });
            var options = new ItemRequestOptions { PreTriggers = ["stamp"] };
            var item = new JObject { ["id"] = "t", ["pk"] = "a" };
            Check.True((bool)(await container.CreateItemAsync(item, Key, options)).Resource["stamped"]!, "the trigger ran");
        });
        await Check.That("binary: stored procedures", async () =>
        {
            await container.Scripts.CreateStoredProcedureAsync(new StoredProcedureProperties(
                "p", "function p(o) { getContext().getResponse().setBody({ got: o.list[1] }); }"));
            var answer = await container.Scripts.ExecuteStoredProcedureAsync<JObject>("p", Key, [new { list = new[] { 1, 2 } }]);
            Check.Equal(2, (int)answer.Resource["got"]!);
        });
    }

    static async Task Many(Server server, Container container)
    {
        await Check.That("binary: bulk", async () =>
        {
            using var client = server.Client(options => options.AllowBulkExecution = true);
            var bulk = client.GetContainer(container.Database.Id, container.Id);
            var answers = await Task.WhenAll(Enumerable.Range(0, 300).Select(n => bulk.CreateItemAsync(Bulk.Item(n), Bulk.Key(n).Pk())));
            Check.Same(Enumerable.Range(0, 300), answers.Select(each => (int)each.Resource["n"]!));
        });
        await Check.That("binary: batch", async () =>
        {
            using var answer = await container.CreateTransactionalBatch(Key)
                .UpsertItem(Item()).ReadItem("b").ExecuteAsync();
            SameItem(answer.GetOperationResultAtIndex<JObject>(1).Resource);
        });
        await Check.That("binary: queries, also ordered, grouped and paged", async () =>
        {
            Check.Same(Enumerable.Range(0, 300), await container.Query<int>(
                "SELECT VALUE c.n FROM c WHERE IS_NUMBER(c.n) ORDER BY c.n", new QueryRequestOptions { MaxItemCount = 23 }));
            Check.Equal(44850, await container.One<int>("SELECT VALUE SUM(c.n) FROM c"));
            Check.Equal(60, (await container.Query<JObject>("SELECT c.pk, COUNT(1) AS many FROM c WHERE c.pk != 'a' GROUP BY c.pk")).Count);
            SameItem(await container.One<JObject>("SELECT * FROM c WHERE c.id = 'b'"));
        });
        await Check.That("binary: read many", async () =>
        {
            var wanted = Enumerable.Range(0, 50).Select(n => ($"i{n}", Bulk.Key(n).Pk())).ToList();
            Check.Equal(50, (await container.ReadManyItemsAsync<JObject>(wanted)).Count);
        });
        await Check.That("binary: the change feed", async () =>
        {
            using var iterator = container.GetChangeFeedIterator<JObject>(ChangeFeedStartFrom.Beginning(), ChangeFeedMode.LatestVersion);
            var found = new List<JObject>();
            for (var page = await iterator.ReadNextAsync(); page.StatusCode == HttpStatusCode.OK; page = await iterator.ReadNextAsync())
            {
                found.AddRange(page);
            }
            Check.Equal(302, found.Count);
            SameItem(found.Single(each => (string)each["id"]! == "b"));
        });
        await Check.That("binary: delete", async () =>
            Check.Equal(HttpStatusCode.NoContent, (await container.DeleteItemAsync<JObject>("b", Key)).StatusCode));
    }
}
