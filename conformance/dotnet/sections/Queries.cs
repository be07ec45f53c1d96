// Queries over several physical partitions: what the client merges itself and what the server does for it.

using System.Net;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Linq;
using Newtonsoft.Json.Linq;

static class Queries
{
    sealed record Thing(string id, string pk, int n, int kind, string name, int[] tags);

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "queries", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk", 30_000);
            for (var n = 0; n < 60; n++)
            {
                await container.CreateItemAsync(new Thing($"i{n:00}", $"k{n % 12}", n, n % 5, $"name {n % 7}", [n, n % 3]));
            }
            await Rows(container);
            await Values(container);
            await Linq(container);
            await Options(container);
        });
    }

    static async Task Rows(Container container)
    {
        await Check.That("query: all items", async () => Check.Equal(60, (await container.Query<Thing>("SELECT * FROM c")).Count));
        await Check.That("query: parameters", async () =>
        {
            var query = new QueryDefinition("SELECT * FROM c WHERE c.n >= @low AND c.n < @high AND c.name = @name")
                .WithParameter("@low", 7).WithParameter("@high", 30).WithParameter("@name", "name 0");
            var found = await container.GetItemQueryIterator<Thing>(query).All();
            Check.Same([7, 14, 21, 28], found.Select(each => each.n).Order());
        });
        await Check.That("query: in one partition key", async () =>
        {
            var found = await container.Query<Thing>("SELECT * FROM c", new QueryRequestOptions { PartitionKey = "k3".Pk() });
            Check.Same([3, 15, 27, 39, 51], found.Select(each => each.n).Order());
        });
        await Check.That("query: a projection", async () =>
        {
            var found = await container.One<JObject>("SELECT c.id, c.n * 2 AS twice, {a: c.kind} AS o FROM c WHERE c.n = 8");
            Check.Equal("""{"id":"i08","twice":16,"o":{"a":3}}""", found.ToString(Newtonsoft.Json.Formatting.None));
        });
        await Check.That("query: a join", async () =>
            Check.Same([3, 0], await container.Query<int>("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 3")));
        await Check.That("query: IN, ARRAY_CONTAINS, STARTSWITH, LIKE", async () =>
        {
            Check.Equal(2, (await container.Query<Thing>("SELECT * FROM c WHERE c.id IN ('i01', 'i59', 'none')")).Count);
            Check.Equal(20, (await container.Query<Thing>("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 2) AND c.n != 2")).Count + 1);
            Check.Equal(10, (await container.Query<Thing>("SELECT * FROM c WHERE STARTSWITH(c.id, 'i1')")).Count);
            Check.Equal(6, (await container.Query<Thing>("SELECT * FROM c WHERE c.id LIKE 'i_3'")).Count);
        });
        await Check.That("query: TOP and OFFSET LIMIT", async () =>
        {
            Check.Same([59, 58, 57], await container.Query<int>("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"));
            Check.Same([10, 11, 12], await container.Query<int>("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3"));
        });
        await Check.That("query: DISTINCT", async () =>
        {
            Check.Same([0, 1, 2, 3, 4], (await container.Query<int>("SELECT DISTINCT VALUE c.kind FROM c")).Order());
            Check.Same([4, 3, 2, 1, 0], await container.Query<int>("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC"));
        });
        await Check.That("query: text that is none", () =>
            Check.Refused(HttpStatusCode.BadRequest, () => container.Query<JObject>("SELECT * FORM c")));
    }

    static async Task Values(Container container)
    {
        await Check.That("aggregate: COUNT, SUM, AVG, MIN, MAX", async () =>
        {
            Check.Equal(60, await container.One<int>("SELECT VALUE COUNT(1) FROM c"));
            Check.Equal(1770, await container.One<int>("SELECT VALUE SUM(c.n) FROM c"));
            Check.Equal(29.5, await container.One<double>("SELECT VALUE AVG(c.n) FROM c"));
            Check.Equal(0, await container.One<int>("SELECT VALUE MIN(c.n) FROM c"));
            Check.Equal("name 6", await container.One<string>("SELECT VALUE MAX(c.name) FROM c"));
        });
        await Check.That("aggregate: several with names", async () =>
        {
            var found = await container.One<JObject>("SELECT COUNT(1) AS many, MAX(c.n) AS most FROM c WHERE c.kind = 2");
            Check.Equal("""{"many":12,"most":57}""", found.ToString(Newtonsoft.Json.Formatting.None));
        });
        await Check.That("aggregate: of nothing", async () =>
            Check.Equal(0, await container.One<int>("SELECT VALUE COUNT(1) FROM c WHERE c.n < 0")));
        await Check.That("aggregate: where nothing can be true", async () =>
            Check.Equal(0, await container.One<int>("SELECT VALUE COUNT(1) FROM c WHERE false")));
        await Check.That("query: without FROM", async () => Check.Equal(3, await container.One<int>("SELECT VALUE 1 + 2")));
        await Check.That("GROUP BY", async () =>
        {
            var found = await container.Query<JObject>("SELECT c.kind, COUNT(1) AS many, SUM(c.n) AS total FROM c GROUP BY c.kind");
            Check.Same(["0:12:330", "1:12:342", "2:12:354", "3:12:366", "4:12:378"],
                found.Select(each => $"{each["kind"]}:{each["many"]}:{each["total"]}").Order());
        });
    }

    static async Task Linq(Container container)
    {
        var things = container.GetItemLinqQueryable<Thing>();
        await Check.That("LINQ: Where, OrderBy, Select", async () =>
        {
            var query = things.Where(each => each.n > 50 && each.name != "name 3").OrderByDescending(each => each.n).Select(each => each.n);
            Check.Same([58, 57, 56, 55, 54, 53, 51], await query.ToFeedIterator().All());
        });
        await Check.That("LINQ: Skip and Take", async () =>
            Check.Same([5, 6], await things.OrderBy(each => each.n).Skip(5).Take(2).Select(each => each.n).ToFeedIterator().All()));
        await Check.That("LINQ: Skip alone", async () =>
            Check.Same([57, 58, 59], await things.OrderBy(each => each.n).Skip(57).Select(each => each.n).ToFeedIterator().All()));
        await Check.That("LINQ: Contains and SelectMany", async () =>
        {
            int[] some = [3, 4];
            var tags = things.Where(each => some.Contains(each.n)).SelectMany(each => each.tags);
            Check.Same([0, 1, 3, 4], (await tags.ToFeedIterator().All()).Order());
        });
        await Check.That("LINQ: Count, Sum, Average, Max", async () =>
        {
            Check.Equal(12, (await things.Where(each => each.kind == 1).CountAsync()).Resource);
            Check.Equal(1770, (await things.Select(each => each.n).SumAsync()).Resource);
            Check.Equal(29.5m, (await things.Select(each => (decimal)each.n).AverageAsync()).Resource);
            Check.Equal(59, (await things.Select(each => each.n).MaxAsync()).Resource);
        });
    }

    static async Task Options(Container container)
    {
        await Check.That("option: no limit on the size of pages", async () =>
        {
            var options = new QueryRequestOptions { MaxItemCount = -1 };
            Check.Equal(60, (await container.Query<Thing>("SELECT * FROM c", options)).Count);
        });
        await Check.That("option: concurrency and a buffer", async () =>
        {
            var options = new QueryRequestOptions { MaxConcurrency = -1, MaxBufferedItemCount = 100, MaxItemCount = 7 };
            Check.Same(Enumerable.Range(0, 60), await container.Query<int>("SELECT VALUE c.n FROM c ORDER BY c.n", options));
        });
        await Check.That("option: feed ranges tile the container", async () =>
        {
            var ranges = await container.GetFeedRangesAsync();
            Check.True(ranges.Count > 1, "there are several");
            var found = new List<int>();
            foreach (var range in ranges)
            {
                found.AddRange(await container.GetItemQueryIterator<int>(range, new QueryDefinition("SELECT VALUE c.n FROM c")).All());
            }
            Check.Same(Enumerable.Range(0, 60), found.Order());
        });
        await Check.That("option: without a plan, on from a token on every page", async () =>
        {
            foreach (var text in new[] { "SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n DESC", "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n" })
            {
                var options = new QueryRequestOptions { MaxItemCount = 2, PartitionKey = "k1".Pk(), EnableOptimisticDirectExecution = true };
                var found = new List<int>();
                string? token = null;
                do
                {
                    using var pages = container.GetItemQueryIterator<int>(text, token, options);
                    var page = await pages.ReadNextAsync();
                    found.AddRange(page);
                    token = page.ContinuationToken;
                }
                while (token is not null);
                Check.Same(new[] { 1, 13, 25, 37, 49 }, found.Order(), text);
            }
        });
        await Check.That("option: a query of conflicts, of which there are none", async () =>
            Check.Equal(0, (await container.Conflicts.GetConflictQueryIterator<JObject>("SELECT * FROM c").All()).Count));
        await Check.That("option: index metrics", async () =>
        {
            string? metrics = null;
            var options = new QueryRequestOptions { PopulateIndexMetrics = true };
            await container.GetItemQueryIterator<Thing>("SELECT * FROM c WHERE c.n = 3", null, options).All(page => metrics ??= page.IndexMetrics);
            Check.True(metrics is not null && metrics.Contains("/n/?"), $"the path is named: {metrics}");
        });
        await Check.That("option: query metrics", async () =>
        {
            ServerSideCumulativeMetrics? metrics = null;
            await container.GetItemQueryIterator<Thing>("SELECT * FROM c WHERE c.n < 10").All(page => metrics ??= page.Diagnostics.GetQueryMetrics());
            Check.True(metrics is not null && metrics.CumulativeMetrics.OutputDocumentCount > 0, "documents were counted");
        });
        await Check.That("option: the read feed", async () =>
        {
            Check.Equal(60, (await container.GetItemQueryIterator<Thing>(requestOptions: new QueryRequestOptions { MaxItemCount = 9 }).All()).Count);
            using var stream = container.GetItemQueryStreamIterator();
            using var page = await stream.ReadNextAsync();
            Check.True(JObject.Parse(page.Content.Text())["Documents"] is JArray, "a page has documents");
        });
    }
}
