// ORDER BY page by page, each page by a new iterator from the token of the last one, where many rows tie.

using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Paging
{
    const int Count = 300;
    const int PageSize = 17;

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "paging", async database =>
        {
            var properties = new ContainerProperties("c", "/pk");
            foreach (var order in new[] { CompositePathSortOrder.Ascending, CompositePathSortOrder.Descending })
            {
                properties.IndexingPolicy.CompositeIndexes.Add([new() { Path = "/tie" }, new() { Path = "/two", Order = order }]);
            }
            Container container = await database.CreateContainerAsync(properties, 30_000);
            await Task.WhenAll(Enumerable.Range(0, Count).Select(n => container.CreateItemAsync(Item(n))));
            await Ordered(container);
            await Unordered(container);
        });
    }

    /// <summary>An item whose values tie with those of many others, and whose `mixed` has every type.</summary>
    static JObject Item(int n)
    {
        JToken?[] kinds = [null, JValue.CreateNull(), false, true, -1.5, 7, "", "text", "Text"];
        var item = new JObject { ["id"] = $"i{n}", ["pk"] = $"k{n % 40}", ["n"] = n, ["same"] = 1, ["tie"] = n % 3, ["two"] = n % 4 };
        if (kinds[n % kinds.Length] is { } mixed)
        {
            item["mixed"] = mixed;
        }
        return item;
    }

    static async Task Ordered(Container container)
    {
        string[] orders =
        [
            "c.n", "c.n DESC", "c.same", "c.same DESC", "c.tie", "c.tie DESC", "c.mixed", "c.mixed DESC",
            "c.tie, c.two", "c.tie DESC, c.two DESC", "c.tie, c.two DESC", "c.tie DESC, c.two",
        ];
        foreach (var order in orders)
        {
            await Check.That($"paging: ORDER BY {order}", async () =>
            {
                var text = $"SELECT * FROM c ORDER BY {order}";
                var whole = await container.Query<JObject>(text);
                Check.Equal(Count, whole.Select(each => (string)each["id"]!).Distinct().Count(), "items at once");
                var paged = await ByTokens(container, text);
                Check.Equal(Count, paged.Count, "rows page by page");
                Check.Equal(Count, paged.Select(each => (string)each["id"]!).Distinct().Count(), "items page by page");
                Check.Same(whole.Select(each => (string)each["id"]!), paged.Select(each => (string)each["id"]!), "the order");
            });
        }
        await Check.That("paging: ORDER BY with a filter and TOP", async () =>
        {
            var found = await ByTokens(container, "SELECT TOP 100 * FROM c WHERE c.tie > 0 ORDER BY c.tie DESC");
            Check.Equal(100, found.Select(each => (string)each["id"]!).Distinct().Count());
        });
    }

    static async Task Unordered(Container container)
    {
        await Check.That("paging: without an order", async () =>
        {
            var found = await ByTokens(container, "SELECT * FROM c");
            Check.Equal(Count, found.Select(each => (string)each["id"]!).Distinct().Count());
            Check.Equal(Count, found.Count);
        });
        await Check.That("paging: OFFSET LIMIT", async () =>
        {
            var found = await ByTokens(container, "SELECT * FROM c ORDER BY c.n OFFSET 30 LIMIT 100");
            Check.Same(Enumerable.Range(30, 100), found.Select(each => (int)each["n"]!));
        });
        await Check.That("paging: in one partition key", async () =>
        {
            var options = new QueryRequestOptions { PartitionKey = "k7".Pk(), MaxItemCount = 3 };
            var found = await ByTokens(container, "SELECT * FROM c ORDER BY c.same", options);
            Check.Equal(8, found.Select(each => (string)each["id"]!).Distinct().Count());
        });
    }

    static async Task<List<JObject>> ByTokens(Container container, string text, QueryRequestOptions? options = null)
    {
        var found = new List<JObject>();
        string? token = null;
        for (var pages = 0; pages < 3 * Count / PageSize; pages++)
        {
            using var iterator = container.GetItemQueryIterator<JObject>(
                text, token, options ?? new QueryRequestOptions { MaxItemCount = PageSize });
            var page = await iterator.ReadNextAsync();
            found.AddRange(page);
            token = page.ContinuationToken;
            if (token is null)
            {
                return found;
            }
        }
        throw new InvalidOperationException($"the pages do not end: {found.Count} rows so far");
    }
}
