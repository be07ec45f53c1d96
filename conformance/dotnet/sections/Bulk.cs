// Bulk execution: many single calls that the client sends together, by physical partition.

using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Bulk
{
    const int Count = 1000;
    const int Keys = 60;

    public static async Task Run(Server server)
    {
        using var client = server.Client(options => options.AllowBulkExecution = true);
        await server.WithDatabase(client, "bulk", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk", 30_000);
            await Thousands(container);
            await Failures(container);
            await Throttled(server, database);
        });
    }

    public static JObject Item(int n) => new() { ["id"] = $"i{n}", ["pk"] = Key(n), ["n"] = n };

    public static string Key(int n) => $"k{n % Keys}";

    /// <summary>Calls for every number at once; gives the statuses that came back.</summary>
    static async Task<IEnumerable<HttpStatusCode>> Each(Func<int, Task<ItemResponse<JObject>>> call)
    {
        var answers = await Task.WhenAll(Enumerable.Range(0, Count).Select(call));
        Check.True(answers.All(each => each.RequestCharge > 0), "every operation has a charge");
        return answers.Select(each => each.StatusCode).Distinct();
    }

    static async Task Thousands(Container container)
    {
        await Check.That("bulk: a thousand creates", async () =>
        {
            Check.Same([HttpStatusCode.Created], await Each(n => container.CreateItemAsync(Item(n), Key(n).Pk())));
            Check.Equal(Count, await container.One<int>("SELECT VALUE COUNT(1) FROM c"));
        });
        await Check.That("bulk: a thousand reads", async () =>
        {
            var answers = await Task.WhenAll(Enumerable.Range(0, Count).Select(n => container.ReadItemAsync<JObject>($"i{n}", Key(n).Pk())));
            Check.Same(Enumerable.Range(0, Count), answers.Select(each => (int)each.Resource["n"]!));
        });
        await Check.That("bulk: a thousand patches", async () =>
        {
            PatchOperation[] steps = [PatchOperation.Increment("/n", 1)];
            Check.Same([HttpStatusCode.OK], await Each(n => container.PatchItemAsync<JObject>($"i{n}", Key(n).Pk(), steps)));
            Check.Equal(Count * (Count + 1) / 2, await container.One<int>("SELECT VALUE SUM(c.n) FROM c"));
        });
        await Check.That("bulk: a thousand replacements", async () =>
        {
            Check.Same([HttpStatusCode.OK], await Each(n => container.ReplaceItemAsync(Item(n), $"i{n}", Key(n).Pk())));
            Check.Equal(Count * (Count - 1) / 2, await container.One<int>("SELECT VALUE SUM(c.n) FROM c"));
        });
        await Check.That("bulk: a thousand upserts without content", async () =>
        {
            var options = new ItemRequestOptions { EnableContentResponseOnWrite = false };
            var answers = await Task.WhenAll(Enumerable.Range(0, Count).Select(n => container.UpsertItemAsync(Item(n), Key(n).Pk(), options)));
            Check.True(answers.All(each => each.Resource is null && each.ETag is not null), "ETags and no items");
        });
        await Check.That("bulk: a thousand deletions", async () =>
        {
            Check.Same([HttpStatusCode.NoContent], await Each(n => container.DeleteItemAsync<JObject>($"i{n}", Key(n).Pk())));
            Check.Equal(0, await container.One<int>("SELECT VALUE COUNT(1) FROM c"));
        });
    }

    static async Task Failures(Container container)
    {
        await Check.That("bulk: some fail and the others are done", async () =>
        {
            var calls = Enumerable.Range(0, 100).Select(n => container.CreateItemStreamAsync(Item(n % 70).ToString().Stream(), Key(n % 70).Pk()));
            var statuses = (await Task.WhenAll(calls)).Select(each => (int)each.StatusCode).ToList();
            Check.Equal("70 30", $"{statuses.Count(each => each == 201)} {statuses.Count(each => each == 409)}");
        });
        await Check.That("bulk: reads of what is not there", async () =>
        {
            var calls = Enumerable.Range(0, 20).Select(n => container.ReadItemStreamAsync($"none{n}", Key(n).Pk()));
            Check.Same([404], (await Task.WhenAll(calls)).Select(each => (int)each.StatusCode).Distinct());
        });
        await Check.That("bulk: conditions", async () =>
        {
            var stale = new ItemRequestOptions { IfMatchEtag = "\"stale\"" };
            await Check.Refused(HttpStatusCode.PreconditionFailed, () => container.ReplaceItemAsync(Item(1), "i1", Key(1).Pk(), stale));
            var etag = (await container.ReadItemAsync<JObject>("i1", Key(1).Pk())).ETag;
            var current = new ItemRequestOptions { IfMatchEtag = etag };
            Check.Equal(HttpStatusCode.NoContent, (await container.DeleteItemAsync<JObject>("i1", Key(1).Pk(), current)).StatusCode);
        });
        await Check.That("bulk: an item with another key than the call", () =>
            Check.Refused(HttpStatusCode.BadRequest, () => container.CreateItemAsync(new JObject { ["id"] = "x", ["pk"] = "y" }, "z".Pk())));
        await Check.That("bulk: reads that are larger together than an answer may be", async () =>
        {
            var pad = new string('x', 900_000);
            await Task.WhenAll(Enumerable.Range(0, 12).Select(n => container.CreateItemAsync(
                new JObject { ["id"] = $"large{n}", ["pk"] = "large", ["pad"] = pad }, "large".Pk())));
            var answers = await Task.WhenAll(Enumerable.Range(0, 12).Select(n => container.ReadItemAsync<JObject>($"large{n}", "large".Pk())));
            Check.True(answers.All(each => ((string)each.Resource["pad"]!).Length == pad.Length), "all came whole");
        });
    }

    static Task Throttled(Server server, Database database) =>
        Check.That("bulk: what is throttled is sent again", async () =>
        {
            using var client = server.Client(options =>
            {
                options.AllowBulkExecution = true;
                options.MaxRetryAttemptsOnRateLimitedRequests = 100;
                options.MaxRetryWaitTimeOnRateLimitedRequests = TimeSpan.FromSeconds(60);
            });
            Container small = await database.CreateContainerAsync("small", "/pk", 400);
            var bulk = client.GetContainer(database.Id, small.Id);
            var answers = await Task.WhenAll(Enumerable.Range(0, 300).Select(n => bulk.CreateItemAsync(Item(n), Key(n).Pk())));
            Check.Equal(300, answers.Count(each => each.StatusCode == HttpStatusCode.Created));
            Check.Equal(300, await small.One<int>("SELECT VALUE COUNT(1) FROM c"));
        });
}
