// Transactional batches: every operation, every way to fail, and that a failed one changes nothing.

using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Batch
{
    static readonly PartitionKey Key = "a".Pk();

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "batch", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk");
            await Successes(container);
            await Failures(container);
            await Keys(database);
        });
    }

    static async Task Successes(Container container)
    {
        var old = await container.CreateItemAsync(new { id = "old", pk = "a", n = 1 });
        await container.CreateItemAsync(new { id = "gone", pk = "a" });
        await Check.That("batch: every operation in one", async () =>
        {
            using var answer = await container.CreateTransactionalBatch(Key)
                .CreateItem(new { id = "new", pk = "a", n = 1 })
                .ReadItem("new")
                .UpsertItem(new { id = "ups", pk = "a", n = 1 })
                .ReplaceItem("new", new { id = "new", pk = "a", n = 2 })
                .PatchItem("old", [PatchOperation.Increment("/n", 4), PatchOperation.Add("/tag", "x")])
                .DeleteItem("gone")
                .ExecuteAsync();
            Check.True(answer.IsSuccessStatusCode, $"it succeeded: {answer.StatusCode} {answer.ErrorMessage}");
            Check.Same([201, 200, 201, 200, 200, 204], answer.Select(each => (int)each.StatusCode));
            Check.Equal(1, (int)answer.GetOperationResultAtIndex<JObject>(1).Resource["n"]!);
            Check.Equal(2, (int)answer.GetOperationResultAtIndex<JObject>(3).Resource["n"]!);
            Check.Equal(5, (int)answer.GetOperationResultAtIndex<JObject>(4).Resource["n"]!);
            Check.True(answer[5].ResourceStream is null, "a deletion has no body");
            Check.True(answer.RequestCharge > 0 && answer.Headers.Session is not null, "it has a charge and a session token");
            Check.Equal(answer[3].ETag, (await container.ReadItemAsync<JObject>("new", Key)).ETag, "ETag");
        });
        await Check.That("batch: the current ETag is a condition that holds", async () =>
        {
            var etag = (await container.ReadItemAsync<JObject>("old", Key)).ETag;
            Check.True(etag != old.ETag, "the batch before has changed the item");
            var options = new TransactionalBatchItemRequestOptions { IfMatchEtag = etag };
            using var answer = await container.CreateTransactionalBatch(Key)
                .ReplaceItem("old", new { id = "old", pk = "a", n = 9 }, options).ExecuteAsync();
            Check.Equal(HttpStatusCode.OK, answer.StatusCode);
        });
        await Check.That("batch: a read of what has not changed", async () =>
        {
            var etag = (await container.ReadItemAsync<JObject>("old", Key)).ETag;
            using var answer = await container.CreateTransactionalBatch(Key)
                .ReadItem("old", new TransactionalBatchItemRequestOptions { IfNoneMatchEtag = etag }).ReadItem("ups").ExecuteAsync();
            Check.True(answer.IsSuccessStatusCode, "it succeeded");
            Check.Equal(HttpStatusCode.NotModified, answer[0].StatusCode);
        });
        await Check.That("batch: no content where none is wanted", async () =>
        {
            var options = new TransactionalBatchItemRequestOptions { EnableContentResponseOnWrite = false };
            using var answer = await container.CreateTransactionalBatch(Key)
                .UpsertItem(new { id = "q", pk = "a" }, options).UpsertItem(new { id = "r", pk = "a" }).ExecuteAsync();
            Check.True(answer[0].ResourceStream is null && answer[0].ETag is not null, "the first has an ETag and no body");
            Check.True(answer[1].ResourceStream is not null, "the second has a body");
        });
        await Check.That("batch: streams come back as they were sent", async () =>
        {
            using var answer = await container.CreateTransactionalBatch(Key)
                .UpsertItemStream("""{"id":"s","pk":"a","t":"ü🙂","big":9007199254740991}""".Stream())
                .ReadItem("s").ExecuteAsync();
            var found = JObject.Parse(answer[1].ResourceStream.Text());
            Check.Equal("ü🙂 9007199254740991", $"{found["t"]} {found["big"]}");
        });
        await Check.That("batch: a hundred operations", async () =>
        {
            var batch = container.CreateTransactionalBatch(Key);
            for (var n = 0; n < 100; n++)
            {
                batch.CreateItem(new { id = $"h{n}", pk = "a", n });
            }
            using var answer = await batch.ExecuteAsync();
            Check.Equal(100, answer.Count(each => each.StatusCode == HttpStatusCode.Created));
        });
        await Check.That("batch: a patch with a condition that holds", async () =>
        {
            var options = new TransactionalBatchPatchItemRequestOptions { FilterPredicate = "FROM c WHERE c.n = 9" };
            using var answer = await container.CreateTransactionalBatch(Key)
                .PatchItem("old", [PatchOperation.Set("/n", 10)], options).ExecuteAsync();
            Check.Equal(HttpStatusCode.OK, answer.StatusCode);
        });
    }

    static async Task Failures(Container container)
    {
        var stale = new TransactionalBatchItemRequestOptions { IfMatchEtag = "\"stale\"" };
        var only = new TransactionalBatchPatchItemRequestOptions { FilterPredicate = "FROM c WHERE c.n = 0" };
        var failures = new (string Name, HttpStatusCode Status, Func<TransactionalBatch, TransactionalBatch> Add)[]
        {
            ("create one that exists", HttpStatusCode.Conflict, batch => batch.CreateItem(new { id = "old", pk = "a" })),
            ("read one that does not exist", HttpStatusCode.NotFound, batch => batch.ReadItem("missing")),
            ("replace one that does not exist", HttpStatusCode.NotFound, batch => batch.ReplaceItem("missing", new { id = "missing", pk = "a" })),
            ("delete one that does not exist", HttpStatusCode.NotFound, batch => batch.DeleteItem("missing")),
            ("replace with a stale ETag", HttpStatusCode.PreconditionFailed, batch => batch.ReplaceItem("old", new { id = "old", pk = "a" }, stale)),
            ("delete with a stale ETag", HttpStatusCode.PreconditionFailed, batch => batch.DeleteItem("old", stale)),
            ("patch with a condition that fails", HttpStatusCode.PreconditionFailed, batch => batch.PatchItem("old", [PatchOperation.Set("/n", 1)], only)),
            ("patch what is not there", HttpStatusCode.BadRequest, batch => batch.PatchItem("old", [PatchOperation.Remove("/none")])),
            ("create with another key", HttpStatusCode.BadRequest, batch => batch.CreateItem(new { id = "x", pk = "b" })),
        };
        foreach (var (name, status, add) in failures)
        {
            await Check.That($"batch fails: {name}", async () =>
            {
                var batch = add(container.CreateTransactionalBatch(Key).CreateItem(new { id = "undone", pk = "a" })).ReadItem("old");
                using var answer = await batch.ExecuteAsync();
                Check.Equal(status, answer.StatusCode);
                Check.Same([424, (int)status, 424], answer.Select(each => (int)each.StatusCode));
                Check.True(!string.IsNullOrEmpty(answer.ErrorMessage), "it says why");
                await Check.Refused(HttpStatusCode.NotFound, () => container.ReadItemAsync<JObject>("undone", Key));
            });
        }
        await Check.That("batch fails: more than a hundred operations", async () =>
        {
            var batch = container.CreateTransactionalBatch(Key);
            for (var n = 0; n < 101; n++)
            {
                batch.ReadItem("old");
            }
            using var answer = await batch.ExecuteAsync();
            Check.Equal(HttpStatusCode.BadRequest, answer.StatusCode);
            Check.True(answer.ErrorMessage.Contains("more operations than what is supported"), answer.ErrorMessage);
        });
        await Check.That("batch fails: more than 2.1 MB", async () =>
        {
            var pad = new string('x', 1_110_000);
            using var answer = await container.CreateTransactionalBatch(Key)
                .CreateItem(new { id = "l1", pk = "a", pad }).CreateItem(new { id = "l2", pk = "a", pad }).ExecuteAsync();
            Check.Equal(HttpStatusCode.RequestEntityTooLarge, answer.StatusCode);
        });
    }

    static async Task Keys(Database database)
    {
        await Check.That("batch: a hierarchical key", async () =>
        {
            Container container = await database.CreateContainerAsync(new ContainerProperties("deep", ["/a", "/b"]));
            var key = new PartitionKeyBuilder().Add("x").Add(2).Build();
            using var answer = await container.CreateTransactionalBatch(key)
                .CreateItem(new { id = "1", a = "x", b = 2 }).ReadItem("1").ExecuteAsync();
            Check.Equal(HttpStatusCode.OK, answer.StatusCode);
        });
        await Check.That("batch: keys of other types", async () =>
        {
            var container = database.GetContainer("c");
            var keys = new (PartitionKey Key, JObject Item)[]
            {
                (new PartitionKey(6), new JObject { ["id"] = "k", ["pk"] = 6 }),
                (PartitionKey.Null, new JObject { ["id"] = "k", ["pk"] = null }),
                (PartitionKey.None, new JObject { ["id"] = "k" }),
                ("日本".Pk(), new JObject { ["id"] = "k", ["pk"] = "日本" }),
            };
            foreach (var (key, item) in keys)
            {
                using var answer = await container.CreateTransactionalBatch(key).CreateItem(item).ReadItem("k").ExecuteAsync();
                Check.Same([201, 200], answer.Select(each => (int)each.StatusCode), item.ToString());
            }
        });
    }
}
