// What the Cosmos provider of Entity Framework Core does with this client: containers from a model, saves by stream and by
// batch, reads, the shapes of its queries, and session tokens that it hands over itself.

using System.Net;
using System.Text;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Scripts;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

static class EntityFramework
{
    const int BatchBytesMax = 2_202_010;

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "ef", async database =>
        {
            await Model(client, database);
            var container = database.GetContainer("Animals");
            await Saves(container);
            await Batches(container);
            await Triggers(container);
            await Reads(container, database);
            await Queries(container);
            await Search(container);
        });
    }

    static async Task Model(CosmosClient client, Database database)
    {
        await Check.That("ef: what is there already is not created", async () =>
        {
            var answer = await client.CreateDatabaseIfNotExistsAsync(database.Id, (ThroughputProperties?)null);
            Check.Equal(HttpStatusCode.OK, answer.StatusCode);
            using var none = await client.GetDatabase(database.Id + "-none").DeleteStreamAsync();
            Check.Equal(HttpStatusCode.NotFound, none.StatusCode);
        });
        await Check.That("ef: a container with vectors and texts", async () =>
        {
            var wanted = new ContainerProperties("Animals", ["/PartitionKey"])
            {
                PartitionKeyDefinitionVersion = PartitionKeyDefinitionVersion.V2,
                DefaultTimeToLive = -1,
                VectorEmbeddingPolicy = new VectorEmbeddingPolicy(
                [
                    new Embedding { Path = "/SBytes", DataType = VectorDataType.Int8, Dimensions = 3, DistanceFunction = DistanceFunction.DotProduct },
                    new Embedding { Path = "/Owned/Singles", DataType = VectorDataType.Float32, Dimensions = 2, DistanceFunction = DistanceFunction.Cosine },
                ]),
                IndexingPolicy = new IndexingPolicy
                {
                    VectorIndexes =
                    [
                        new VectorIndexPath { Path = "/SBytes", Type = VectorIndexType.Flat },
                        new VectorIndexPath { Path = "/Owned/Singles", Type = VectorIndexType.Flat },
                    ],
                    FullTextIndexes = [new FullTextIndexPath { Path = "/Description" }],
                },
                FullTextPolicy = new FullTextPolicy
                {
                    DefaultLanguage = "en-US",
                    FullTextPaths = [new FullTextPath { Path = "/Description", Language = "en-US" }],
                },
            };
            var made = await database.CreateContainerIfNotExistsAsync(wanted);
            Check.Equal(HttpStatusCode.Created, made.StatusCode);
            Check.Equal(HttpStatusCode.OK, (await database.CreateContainerIfNotExistsAsync(wanted)).StatusCode);
            Check.Equal("/*", made.Resource.IndexingPolicy.IncludedPaths.Single().Path);
            Check.Equal(2, made.Resource.VectorEmbeddingPolicy.Embeddings.Count);
        });
    }

    static async Task Saves(Container container)
    {
        await Check.That("ef: a save without its body in the answer", async () =>
        {
            var options = new ItemRequestOptions { EnableContentResponseOnWrite = false };
            using var made = await container.CreateItemStreamAsync(Animal("1", "habitat", "bison, beaver, fox", 1).Bytes(), "habitat".Pk(), options);
            Check.Equal(HttpStatusCode.Created, made.StatusCode);
            Check.True(made.Content is null or { Length: 0 } && made.Headers.ETag is not null && made.Headers.Session is not null, "ETag and token only");
            using var read = await container.ReadItemStreamAsync("1", "habitat".Pk(), new ItemRequestOptions { SessionToken = made.Headers.Session });
            var kept = JObject.Parse(read.Content.Text());
            Check.Equal(made.Headers.ETag, (string)kept["_etag"]!, "the null that came as _etag is the server's now");
            kept["Description"] = "bison, beaver, moose";
            options.IfMatchEtag = made.Headers.ETag;
            using var changed = await container.ReplaceItemStreamAsync(kept.Bytes(), "1", "habitat".Pk(), options);
            Check.Equal(HttpStatusCode.OK, changed.StatusCode);
            using var stale = await container.ReplaceItemStreamAsync(kept.Bytes(), "1", "habitat".Pk(), options);
            Check.Equal(HttpStatusCode.PreconditionFailed, stale.StatusCode);
            using var removed = await container.DeleteItemStreamAsync("1", "habitat".Pk(), options);
            Check.Equal(HttpStatusCode.PreconditionFailed, removed.StatusCode);
            using var none = await container.DeleteItemStreamAsync("none", "habitat".Pk(), options);
            Check.Equal(HttpStatusCode.NotFound, none.StatusCode);
        });
    }

    static async Task Batches(Container container)
    {
        var key = "taxonomy".Pk();
        await Check.That("ef: what is changed in one partition is saved by one batch", async () =>
        {
            var options = new TransactionalBatchItemRequestOptions { EnableContentResponseOnWrite = false };
            using var made = await container.CreateTransactionalBatch(key)
                .CreateItemStream(Animal("2", "taxonomy", "duck, bat, eagle", 2).Bytes(), options)
                .CreateItemStream(Animal("3", "taxonomy", "bison, beaver, bat", 3).Bytes(), options)
                .ExecuteAsync(new TransactionalBatchRequestOptions { SessionToken = null });
            Check.Same([201, 201], made.Select(each => (int)each.StatusCode));
            Check.True(made.All(each => each.ETag is not null && each.ResourceStream is null), "an ETag each, and no body");
            var current = new TransactionalBatchItemRequestOptions { IfMatchEtag = made[0].ETag };
            using var changed = await container.CreateTransactionalBatch(key)
                .ReplaceItemStream("2", Animal("2", "taxonomy", "duck, bat", 5).Bytes(), current)
                .CreateItemStream(Animal("4", "taxonomy", "otter", 4).Bytes())
                .DeleteItem("4")
                .ExecuteAsync(new TransactionalBatchRequestOptions { SessionToken = made.Headers.Session });
            Check.Same([200, 201, 204], changed.Select(each => (int)each.StatusCode));
        });
        await Check.That("ef: only the entry that failed has the status of the batch", async () =>
        {
            using var answer = await container.CreateTransactionalBatch(key)
                .CreateItemStream(Animal("5", "taxonomy", "", 0).Bytes())
                .CreateItemStream(Animal("2", "taxonomy", "", 0).Bytes())
                .ExecuteAsync();
            Check.Equal(HttpStatusCode.Conflict, answer.StatusCode);
            Check.Same([424, 409], answer.Select(each => (int)each.StatusCode));
            Check.True(!string.IsNullOrEmpty(answer.ErrorMessage), "it has a text");
            Check.Equal(0, (await container.Query<JObject>("SELECT VALUE c FROM root c WHERE (c[\"id\"] = \"5\")")).Count);
        });
        await Check.That("ef: a batch may have as many bytes as the service takes, and none more", async () =>
        {
            // What the rows of a request have beside two items to create.
            const int around = 70;
            var large = "large".Pk();
            var first = (int)Animal("x", "large", "", 0).Bytes().Length;
            var rest = BatchBytesMax - around - 2 * first;
            foreach (var (more, wanted) in new[] { (2, HttpStatusCode.RequestEntityTooLarge), (0, HttpStatusCode.OK) })
            {
                var halves = new[] { rest / 2 + more, rest - rest / 2 };
                using var answer = await container.CreateTransactionalBatch(large)
                    .CreateItemStream(Animal("x", "large", new string('x', halves[0]), 0).Bytes())
                    .CreateItemStream(Animal("y", "large", new string('x', halves[1]), 0).Bytes())
                    .ExecuteAsync();
                Check.Equal(wanted, answer.StatusCode, $"{more} bytes more");
            }
            await container.DeleteAllItemsByPartitionKeyStreamAsync(large);
        });
    }

    static async Task Triggers(Container container)
    {
        await Check.That("ef: a trigger writes a log beside the item", async () =>
        {
            await container.Scripts.CreateTriggerAsync(new TriggerProperties
            {
                Id = "log",
                TriggerType = TriggerType.Pre,
                TriggerOperation = TriggerOperation.Create,
                Body = """
                    function () {
                        var context = getContext(), doc = context.getRequest().getBody(), collection = context.getCollection();
                        var entry = { id: "log_" + doc.id, $type: "Log", PartitionKey: doc.PartitionKey };
                        if (!collection.createDocument(collection.getSelfLink(), entry)) throw new Error("not accepted");
                    }
                    """,
            });
            var options = new ItemRequestOptions { PreTriggers = ["log"] };
            using var made = await container.CreateItemStreamAsync(Animal("6", "logged", "", 0).Bytes(), "logged".Pk(), options);
            Check.Equal(HttpStatusCode.Created, made.StatusCode);
            var logged = "SELECT VALUE c[\"id\"] FROM root c WHERE (c[\"$type\"] = \"Log\")";
            Check.Same(["log_6"], await container.Query<string>(logged, new QueryRequestOptions { PartitionKey = "logged".Pk() }));
        });
    }

    static async Task Reads(Container container, Database database)
    {
        await Check.That("ef: an item that is not there has no sub-status, a container has one", async () =>
        {
            using var item = await container.ReadItemStreamAsync("none", "habitat".Pk());
            Check.Equal(HttpStatusCode.NotFound, item.StatusCode);
            Check.True(item.Headers["x-ms-substatus"] is null or "" or "0", $"none: {item.Headers["x-ms-substatus"]}");
            using var other = await database.GetContainer("none").ReadItemStreamAsync("none", "habitat".Pk());
            Check.Equal(HttpStatusCode.NotFound, other.StatusCode);
            Check.True(other.Headers["x-ms-substatus"] is not (null or "" or "0"), "the container's is told");
        });
        await Check.That("ef: a session token that is none is refused by reads, writes, batches and queries", async () =>
        {
            const string text = "The session token provided 'invalidtoken' is invalid";
            var options = new ItemRequestOptions { SessionToken = "invalidtoken" };
            using var read = await container.ReadItemStreamAsync("none", "habitat".Pk(), options);
            using var made = await container.CreateItemStreamAsync(Animal("7", "habitat", "", 0).Bytes(), "habitat".Pk(), options);
            using var gone = await container.DeleteItemStreamAsync("none", "habitat".Pk(), options);
            using var batch = await container.CreateTransactionalBatch("habitat".Pk())
                .DeleteItem("none").ExecuteAsync(new TransactionalBatchRequestOptions { SessionToken = "invalidtoken" });
            var pages = container.GetItemQueryStreamIterator("SELECT VALUE c FROM root c", null, new QueryRequestOptions { SessionToken = "invalidtoken" });
            using var page = await pages.ReadNextAsync();
            foreach (var message in new[] { read.ErrorMessage, made.ErrorMessage, gone.ErrorMessage, batch.ErrorMessage, page.ErrorMessage })
            {
                Check.True(message?.Contains(text) == true, message ?? "no text");
            }
            Check.Same([400, 400, 400, 400, 400], new[] { read.StatusCode, made.StatusCode, gone.StatusCode, batch.StatusCode, page.StatusCode }.Select(each => (int)each));
        });
        await Check.That("ef: each page has a token for the session and for the next page", async () =>
        {
            var seen = new List<string>();
            string? token = null;
            do
            {
                var options = new QueryRequestOptions { MaxItemCount = 1, ResponseContinuationTokenLimitInKb = 2 };
                using var pages = container.GetItemQueryStreamIterator("SELECT VALUE c FROM root c WHERE (c[\"$type\"] = \"Animal\") ORDER BY c[\"id\"]", token, options);
                using var page = await pages.ReadNextAsync();
                page.EnsureSuccessStatusCode();
                Check.True(!string.IsNullOrEmpty(page.Headers.Session), "the page has a session token");
                seen.AddRange(Documents(page.Content).Select(each => (string)each["id"]!));
                token = page.ContinuationToken;
            }
            while (token is not null);
            Check.Same(["1", "2", "3", "6"], seen);
        });
    }

    static async Task Queries(Container container)
    {
        var shapes = new (string Text, object? Parameter, string Found)[]
        {
            ("SELECT VALUE c FROM root c WHERE (c[\"$type\"] IN (\"Animal\", \"Other\") AND (c[\"id\"] = @p)) OFFSET 0 LIMIT 2", "2", "1"),
            ("SELECT VALUE COUNT(1) FROM root c WHERE (c[\"$type\"] = \"Animal\")", null, "4"),
            ("SELECT VALUE EXISTS (SELECT 1 FROM root c WHERE (c[\"id\"] = \"2\"))", null, "refused"),
            ("SELECT VALUE c[\"id\"] FROM root c WHERE EXISTS (SELECT 1 FROM i IN c[\"Ints\"] WHERE ((i > 1) AND (i = @p)))", 13, "[\"3\"]"),
            ("SELECT VALUE c[\"id\"] FROM root c WHERE (ARRAY_LENGTH(ARRAY_SLICE(ARRAY(SELECT VALUE i FROM i IN c[\"Ints\"] WHERE (i > 1)), 1, 2)) = 1) ORDER BY c[\"id\"]", null, "[\"2\",\"3\"]"),
            ("SELECT VALUE c[\"id\"] FROM root c WHERE ARRAY_CONTAINS(@p, c[\"id\"]) ORDER BY c[\"id\"]", new[] { "1", "3" }, "[\"1\",\"3\"]"),
            ("SELECT VALUE c[\"id\"] FROM root c WHERE (ARRAY_LENGTH(SetUnion(c[\"Ints\"], @p)) = 4) ORDER BY c[\"id\"]", new[] { 1, 99 }, "[\"2\",\"3\"]"),
            ("SELECT VALUE j FROM root c JOIN (SELECT VALUE i FROM i IN c[\"Ints\"] WHERE (i > @p)) j", 13, "[15]"),
            ("SELECT VALUE { \"Id\" : c[\"id\"], \"c\" : ((c[\"Ints\"][0] ?? 0) + 1) } FROM root c WHERE (c[\"id\"] = @p)", "2", "[{\"Id\":\"2\",\"c\":2}]"),
            ("SELECT VALUE c FROM root c WHERE ([1, 2, 3][c[\"Ints\"][0]] = 1)", null, "refused"),
            ("SELECT VALUE (ARRAY(SELECT VALUE i FROM i IN c[\"Ints\"] ORDER BY i DESC)[0]) FROM root c", null, "refused"),
            ("SELECT VALUE c[\"id\"] FROM root c WHERE STARTSWITH(c[\"Description\"], \"duck\") OFFSET @p LIMIT 5", 0, "[\"2\"]"),
            ("SELECT VALUE DateTimePart(\"mm\", \"1998-05-04T15:30:10.1234564+01:30\")", null, "[5]"),
        };
        foreach (var (text, parameter, found) in shapes)
        {
            await Check.That($"ef: {text}", async () =>
            {
                var definition = new QueryDefinition(text);
                if (parameter is not null)
                {
                    definition.WithParameter("@p", parameter);
                }
                var rows = new List<JToken>();
                using var pages = container.GetItemQueryStreamIterator(definition);
                while (pages.HasMoreResults)
                {
                    using var page = await pages.ReadNextAsync();
                    if (found == "refused")
                    {
                        Check.Equal(HttpStatusCode.BadRequest, page.StatusCode);
                        return;
                    }
                    page.EnsureSuccessStatusCode();
                    rows.AddRange(Documents(page.Content));
                }
                if (found.StartsWith('['))
                {
                    Check.Equal(found, JsonConvert.SerializeObject(rows));
                }
                else
                {
                    Check.Equal(found, rows.Count == 1 && rows[0] is JValue value ? value.ToString() : rows.Count.ToString());
                }
            });
        }
    }

    static async Task Search(Container container)
    {
        await Check.That("ef: nearest vectors, with the distance of the model", async () =>
        {
            const string distance = "VectorDistance(c[\"SBytes\"], @p, false, {'distanceFunction':'dotproduct', 'dataType':'int8'})";
            var nearest = new QueryDefinition($"SELECT VALUE c[\"id\"] FROM root c WHERE (c[\"$type\"] = \"Animal\") ORDER BY {distance} OFFSET 0 LIMIT 2");
            Check.Same(["2", "3"], await container.GetItemQueryIterator<string>(nearest.WithParameter("@p", new[] { 1, 1, 1 })).All());
        });
        await Check.That("ef: texts and vectors, ranked together", async () =>
        {
            const string score = "FullTextScore(c[\"Description\"], \"beaver\", \"otter\")";
            const string distance = "VectorDistance(c[\"Owned\"][\"Singles\"], @p, false, {'distanceFunction':'cosine', 'dataType':'float32'})";
            var ranked = new QueryDefinition($"SELECT VALUE c[\"id\"] FROM root c ORDER BY RANK RRF({score}, {distance}) OFFSET 0 LIMIT 3");
            var found = await container.GetItemQueryIterator<string>(ranked.WithParameter("@p", new[] { 0.5f, 1f })).All();
            Check.Equal(3, found.Count);
            var contains = "SELECT VALUE c[\"id\"] FROM root c WHERE FullTextContainsAll(c[\"Description\"], \"bison\", \"beaver\") ORDER BY c[\"id\"]";
            Check.Same(["1", "3"], await container.Query<string>(contains));
        });
    }

    /// <summary>An entity as the provider writes it: its type, a null where the server sets the ETag, owned parts inside.</summary>
    static JObject Animal(string id, string key, string description, int seed) => new()
    {
        ["id"] = id,
        ["$type"] = "Animal",
        ["Description"] = description,
        ["Ints"] = seed > 1 ? new JArray(1, 1 + seed / 2, 10 + seed) : new JArray(),
        ["Owned"] = new JObject { ["Singles"] = new JArray(0.5 * seed, 1) },
        ["PartitionKey"] = key,
        ["SBytes"] = new JArray(seed, seed, seed),
        ["_etag"] = null,
    };

    static MemoryStream Bytes(this JObject item) => new(Encoding.UTF8.GetBytes(item.ToString(Formatting.None)));

    /// <summary>The first array in an answer, which is where the provider looks for results.</summary>
    static IEnumerable<JToken> Documents(Stream answer) => JObject.Parse(answer.Text()).Properties().First(each => each.Value is JArray).Value;
}
