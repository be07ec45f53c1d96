// Operations on single items: what they answer, their conditions, patches, keys of every type.

using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Items
{
    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "items", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk");
            await Writes(container);
            await Conditions(container);
            await Patches(container);
            await Keys(container);
            await Values(container);
        });
    }

    static async Task Writes(Container container)
    {
        await Check.That("item: create", async () =>
        {
            var answer = await container.CreateItemAsync(new { id = "1", pk = "a", n = 1 }, "a".Pk());
            Check.Equal(HttpStatusCode.Created, answer.StatusCode);
            Check.True(answer.RequestCharge > 0, "it has a charge");
            Check.True(answer.ETag.StartsWith('"'), "its ETag is quoted");
            Check.True(!string.IsNullOrEmpty(answer.Headers.Session), "it has a session token");
            Check.True(!string.IsNullOrEmpty(answer.ActivityId), "it has an activity id");
        });
        await Check.That("item: create one that exists", () =>
            Check.Refused(HttpStatusCode.Conflict, () => container.CreateItemAsync(new { id = "1", pk = "a" }, "a".Pk())));
        await Check.That("item: create without a key in the call", async () =>
            Check.Equal(HttpStatusCode.Created, (await container.CreateItemAsync(new { id = "2", pk = "a" })).StatusCode));
        await Check.That("item: create with another key than its own", () =>
            Check.Refused(HttpStatusCode.BadRequest, () => container.CreateItemAsync(new { id = "3", pk = "a" }, "b".Pk())));
        await Check.That("item: create without an id", () =>
            Check.Refused(HttpStatusCode.BadRequest, () => container.CreateItemAsync(new { pk = "a" }, "a".Pk())));
        await Check.That("item: read", async () =>
            Check.Equal(1, (int)(await container.ReadItemAsync<JObject>("1", "a".Pk())).Resource["n"]!));
        await Check.That("item: read one that does not exist", async () =>
        {
            var error = await Check.Refused(HttpStatusCode.NotFound, () => container.ReadItemAsync<JObject>("missing", "a".Pk()));
            Check.Equal(0, error.SubStatusCode);
            Check.True(error.RequestCharge > 0, "a miss has a charge");
        });
        await Check.That("item: read in a container that does not exist", async () =>
        {
            var error = await Check.Refused(
                HttpStatusCode.NotFound, () => container.Database.GetContainer("missing").ReadItemAsync<JObject>("1", "a".Pk()));
            Check.Equal(1003, error.SubStatusCode);
        });
        await Check.That("item: streams are answered and not thrown", async () =>
        {
            using var found = await container.ReadItemStreamAsync("1", "a".Pk());
            Check.Equal("1", (string)JObject.Parse(found.Content.Text())["id"]!);
            using var missing = await container.ReadItemStreamAsync("missing", "a".Pk());
            Check.Equal(HttpStatusCode.NotFound, missing.StatusCode);
            Check.True(missing.ErrorMessage.Contains("Resource Not Found"), $"the text says so: {missing.ErrorMessage}");
        });
        await Check.That("item: upsert", async () =>
        {
            Check.Equal(HttpStatusCode.Created, (await container.UpsertItemAsync(new { id = "u", pk = "a", n = 1 })).StatusCode);
            Check.Equal(HttpStatusCode.OK, (await container.UpsertItemAsync(new { id = "u", pk = "a", n = 2 })).StatusCode);
        });
        await Check.That("item: replace", async () =>
        {
            var answer = await container.ReplaceItemAsync(JObject.FromObject(new { id = "u", pk = "a", n = 3 }), "u", "a".Pk());
            Check.Equal(3, (int)answer.Resource["n"]!);
            await Check.Refused(HttpStatusCode.NotFound, () => container.ReplaceItemAsync(new { id = "no", pk = "a" }, "no", "a".Pk()));
        });
        await Check.That("item: no content where none is wanted", async () =>
        {
            var options = new ItemRequestOptions { EnableContentResponseOnWrite = false };
            var answer = await container.UpsertItemAsync(new JObject { ["id"] = "u", ["pk"] = "a" }, "a".Pk(), options);
            Check.Equal(null, answer.Resource);
            Check.True(answer.ETag is not null, "it has an ETag all the same");
        });
        await Check.That("item: delete", async () =>
        {
            Check.Equal(HttpStatusCode.NoContent, (await container.DeleteItemAsync<JObject>("u", "a".Pk())).StatusCode);
            await Check.Refused(HttpStatusCode.NotFound, () => container.DeleteItemAsync<JObject>("u", "a".Pk()));
        });
        await Check.That("item: read many", async () =>
        {
            var wanted = new List<(string, PartitionKey)> { ("1", "a".Pk()), ("missing", "a".Pk()), ("2", "a".Pk()) };
            var found = await container.ReadManyItemsAsync<JObject>(wanted);
            Check.Same(["1", "2"], found.Select(each => (string)each["id"]!).Order());
        });
        await Check.That("item: larger than 2 MB", async () =>
        {
            var large = new { id = "large", pk = "a", pad = new string('x', 2_200_000) };
            await Check.Refused(HttpStatusCode.RequestEntityTooLarge, () => container.CreateItemAsync(large, "a".Pk()));
        });
        await Check.That("item: delete all of a partition key", async () =>
        {
            await container.CreateItemAsync(new { id = "1", pk = "gone" });
            using var answer = await container.DeleteAllItemsByPartitionKeyStreamAsync("gone".Pk());
            Check.Equal(HttpStatusCode.OK, answer.StatusCode);
            await Check.Refused(HttpStatusCode.NotFound, () => container.ReadItemAsync<JObject>("1", "gone".Pk()));
        });
    }

    static async Task Conditions(Container container)
    {
        var etag = (await container.UpsertItemAsync(new { id = "e", pk = "a", n = 1 })).ETag;
        var stale = new ItemRequestOptions { IfMatchEtag = "\"00000000-0000-0000-0000-000000000000\"" };
        await Check.That("condition: replace, upsert, patch and delete with a stale ETag", async () =>
        {
            await Check.Refused(HttpStatusCode.PreconditionFailed, () => container.ReplaceItemAsync(new { id = "e", pk = "a" }, "e", "a".Pk(), stale));
            await Check.Refused(HttpStatusCode.PreconditionFailed, () => container.UpsertItemAsync(new { id = "e", pk = "a" }, "a".Pk(), stale));
            await Check.Refused(HttpStatusCode.PreconditionFailed, () => container.PatchItemAsync<JObject>(
                "e", "a".Pk(), [PatchOperation.Set("/n", 2)], new PatchItemRequestOptions { IfMatchEtag = stale.IfMatchEtag }));
            await Check.Refused(HttpStatusCode.PreconditionFailed, () => container.DeleteItemAsync<JObject>("e", "a".Pk(), stale));
        });
        await Check.That("condition: replace with the current ETag", async () =>
        {
            var answer = await container.ReplaceItemAsync(
                new { id = "e", pk = "a", n = 2 }, "e", "a".Pk(), new ItemRequestOptions { IfMatchEtag = etag });
            Check.True(answer.ETag != etag, "the ETag has changed");
            etag = answer.ETag;
        });
        await Check.That("condition: read what has not changed", async () =>
        {
            using var answer = await container.ReadItemStreamAsync("e", "a".Pk(), new ItemRequestOptions { IfNoneMatchEtag = etag });
            Check.Equal(HttpStatusCode.NotModified, answer.StatusCode);
        });
    }

    static async Task Patches(Container container)
    {
        await container.UpsertItemAsync(new { id = "p", pk = "a", n = 1, gone = true, list = new[] { 1, 2 }, from = "x" });
        await Check.That("patch: every operation", async () =>
        {
            var answer = await container.PatchItemAsync<JObject>("p", "a".Pk(), [
                PatchOperation.Add("/new", "added"),
                PatchOperation.Set("/n", 5),
                PatchOperation.Increment("/n", 2),
                PatchOperation.Increment("/d", 0.5),
                PatchOperation.Remove("/gone"),
                PatchOperation.Add("/list/1", 9),
                PatchOperation.Replace("/list/0", 8),
                PatchOperation.Move("/from", "/to"),
            ]);
            var found = answer.Resource;
            Check.Equal("""{"n":7,"d":0.5,"new":"added","list":[8,9,2],"to":"x"}""", new JObject(
                new[] { "n", "d", "new", "list", "to" }.Select(name => new JProperty(name, found[name]))).ToString(Newtonsoft.Json.Formatting.None));
            Check.True(!found.ContainsKey("gone") && !found.ContainsKey("from"), "what was removed and moved is gone");
        });
        await Check.That("patch: a condition", async () =>
        {
            var only = new PatchItemRequestOptions { FilterPredicate = "FROM c WHERE c.n = 0" };
            await Check.Refused(HttpStatusCode.PreconditionFailed, () => container.PatchItemAsync<JObject>(
                "p", "a".Pk(), [PatchOperation.Set("/n", 0)], only));
        });
        await Check.That("patch: what does not fit the item", () =>
            Check.Refused(HttpStatusCode.BadRequest, () => container.PatchItemAsync<JObject>("p", "a".Pk(), [PatchOperation.Remove("/none")])));
        await Check.That("patch: the id and the partition key stay", async () =>
        {
            await Check.Refused(HttpStatusCode.BadRequest, () => container.PatchItemAsync<JObject>("p", "a".Pk(), [PatchOperation.Set("/id", "q")]));
            await Check.Refused(HttpStatusCode.BadRequest, () => container.PatchItemAsync<JObject>("p", "a".Pk(), [PatchOperation.Set("/pk", "q")]));
        });
    }

    static async Task Keys(Container container)
    {
        var keys = new (string Name, JObject Item, PartitionKey Key)[]
        {
            ("a number", new JObject { ["id"] = "k", ["pk"] = 1.5 }, new PartitionKey(1.5)),
            ("a whole number", new JObject { ["id"] = "k", ["pk"] = 6 }, new PartitionKey(6)),
            ("true", new JObject { ["id"] = "k", ["pk"] = true }, new PartitionKey(true)),
            ("null", new JObject { ["id"] = "k", ["pk"] = null }, PartitionKey.Null),
            ("none", new JObject { ["id"] = "k" }, PartitionKey.None),
            ("other scripts", new JObject { ["id"] = "k", ["pk"] = "日本 ü🙂" }, "日本 ü🙂".Pk()),
            ("the empty string", new JObject { ["id"] = "k", ["pk"] = "" }, "".Pk()),
            ("a long string", new JObject { ["id"] = "k", ["pk"] = new string('k', 1500) }, new string('k', 1500).Pk()),
        };
        foreach (var (name, item, key) in keys)
        {
            await Check.That($"key: {name}", async () =>
            {
                await container.CreateItemAsync(item, key);
                Check.Equal("k", (string)(await container.ReadItemAsync<JObject>("k", key)).Resource["id"]!);
                var found = await container.Query<JObject>("SELECT * FROM c", new QueryRequestOptions { PartitionKey = key });
                Check.Equal(1, found.Count);
                await container.DeleteItemAsync<JObject>("k", key);
            });
        }
    }

    static async Task Values(Container container)
    {
        await Check.That("values: all of JSON comes back", async () =>
        {
            var text = """{"id":"v","pk":"a","i":9007199254740991,"d":0.1,"e":1E+100,"s":"\" \\ \n é 日本 🙂","n":null,"b":[true,false],"o":{"l":[[],{}]}}""";
            using var answer = await container.UpsertItemStreamAsync(text.Stream(), "a".Pk());
            Check.Equal(HttpStatusCode.Created, answer.StatusCode);
            var found = (await container.ReadItemAsync<JObject>("v", "a".Pk())).Resource;
            foreach (var property in JObject.Parse(text).Properties())
            {
                Check.True(JToken.DeepEquals(property.Value, found[property.Name]), $"{property.Name} is {found[property.Name]}");
            }
        });
        await Check.That("values: what is not JSON", async () =>
        {
            using var answer = await container.CreateItemStreamAsync("{\"id\":".Stream(), "a".Pk());
            Check.Equal(HttpStatusCode.BadRequest, answer.StatusCode);
        });
    }
}
