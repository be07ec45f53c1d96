// The change feed: pulled from any start, by range and by key, resumed; and the processor with its leases.

using System.Collections.Concurrent;
using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class ChangeFeed
{
    const int Count = 60;

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "feed", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk", 30_000);
            for (var n = 0; n < Count; n++)
            {
                await container.CreateItemAsync(new { id = $"i{n}", pk = $"k{n % 12}", n });
            }
            await Pulled(container);
            await Processed(database, container);
            await Versions(database);
        });
    }

    static async Task<(List<JObject> Items, string Token)> Pull(Container container, ChangeFeedStartFrom start, int? pageSize = null)
    {
        var found = new List<JObject>();
        using var iterator = container.GetChangeFeedIterator<JObject>(
            start, ChangeFeedMode.LatestVersion, new ChangeFeedRequestOptions { PageSizeHint = pageSize });
        while (true)
        {
            var page = await iterator.ReadNextAsync();
            if (page.StatusCode == HttpStatusCode.NotModified)
            {
                return (found, page.ContinuationToken);
            }
            found.AddRange(page);
        }
    }

    static async Task Pulled(Container container)
    {
        await Check.That("feed: from the beginning, in small pages", async () =>
        {
            var (items, _) = await Pull(container, ChangeFeedStartFrom.Beginning(), 7);
            Check.Same(Enumerable.Range(0, Count), items.Select(each => (int)each["n"]!).Order());
        });
        await Check.That("feed: changes of one key come in order", async () =>
        {
            var (items, _) = await Pull(container, ChangeFeedStartFrom.Beginning(FeedRange.FromPartitionKey("k5".Pk())));
            Check.Same([5, 17, 29, 41, 53], items.Select(each => (int)each["n"]!));
        });
        await Check.That("feed: ranges together are the whole", async () =>
        {
            var found = new List<int>();
            foreach (var range in await container.GetFeedRangesAsync())
            {
                found.AddRange((await Pull(container, ChangeFeedStartFrom.Beginning(range))).Items.Select(each => (int)each["n"]!));
            }
            Check.Same(Enumerable.Range(0, Count), found.Order());
        });
        await Check.That("feed: on from a token", async () =>
        {
            var (_, token) = await Pull(container, ChangeFeedStartFrom.Beginning());
            await container.UpsertItemAsync(new { id = "i3", pk = "k3", n = 1003 });
            await container.CreateItemAsync(new { id = "new", pk = "k4", n = 1004 });
            var (items, _) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(token));
            Check.Same([1003, 1004], items.Select(each => (int)each["n"]!).Order());
        });
        await Check.That("feed: from now", async () =>
        {
            using var iterator = container.GetChangeFeedIterator<JObject>(ChangeFeedStartFrom.Now(), ChangeFeedMode.LatestVersion);
            var nothing = await iterator.ReadNextAsync();
            Check.Equal(HttpStatusCode.NotModified, nothing.StatusCode);
            await container.UpsertItemAsync(new { id = "later", pk = "k1", n = 2000 });
            var (items, _) = await Pull(container, ChangeFeedStartFrom.ContinuationToken(nothing.ContinuationToken));
            Check.Same([2000], items.Select(each => (int)each["n"]!));
        });
        await Check.That("feed: from a time", async () =>
        {
            var (items, _) = await Pull(container, ChangeFeedStartFrom.Time(DateTime.UtcNow.AddHours(-1)));
            Check.Equal(Count + 2, items.Count);
            (items, _) = await Pull(container, ChangeFeedStartFrom.Time(DateTime.UtcNow.AddHours(1)));
            Check.Equal(0, items.Count);
        });
    }

    static async Task Processed(Database database, Container container)
    {
        Container leases = await database.CreateContainerAsync("leases", "/id");
        var seen = new ConcurrentDictionary<string, int>();
        ChangeFeedProcessor Processor(string instance) => container
            .GetChangeFeedProcessorBuilder<JObject>("check", (IReadOnlyCollection<JObject> changes, CancellationToken _) =>
            {
                foreach (var change in changes)
                {
                    seen[(string)change["id"]!] = (int)change["n"]!;
                }
                return Task.CompletedTask;
            })
            .WithInstanceName(instance)
            .WithLeaseContainer(leases)
            .WithStartTime(DateTime.MinValue.ToUniversalTime())
            .WithPollInterval(TimeSpan.FromMilliseconds(200))
            .Build();

        await Check.That("processor: two instances see every change", async () =>
        {
            var processors = new[] { Processor("one"), Processor("two") };
            await Task.WhenAll(processors.Select(each => each.StartAsync()));
            await Until(() => seen.Count >= Count + 2);
            await container.UpsertItemAsync(new { id = "i7", pk = "k7", n = 1007 });
            await Until(() => seen["i7"] == 1007);
            await Task.WhenAll(processors.Select(each => each.StopAsync()));
        });
        await Check.That("processor: another goes on where they stopped", async () =>
        {
            seen.Clear();
            await container.UpsertItemAsync(new { id = "i8", pk = "k8", n = 1008 });
            var processor = Processor("three");
            await processor.StartAsync();
            await Until(() => seen.ContainsKey("i8"));
            await processor.StopAsync();
            Check.True(seen.Count < Count, $"it did not begin anew: {seen.Count}");
        });
        await Check.That("processor: the estimator counts what is left", async () =>
        {
            await container.UpsertItemAsync(new { id = "i9", pk = "k9", n = 1009 });
            var left = await container.GetChangeFeedEstimator("check", leases).GetCurrentStateIterator().All();
            // A processor that is stopped may not have noted the last change it saw.
            Check.True(left.Sum(each => each.EstimatedLag) is 1 or 2, $"one or two are left: {left.Sum(each => each.EstimatedLag)}");
        });
    }

    static async Task Versions(Database database)
    {
        await Check.That("feed: all versions and deletes", async () =>
        {
            var properties = new ContainerProperties("v", "/pk")
            {
                ChangeFeedPolicy = new ChangeFeedPolicy { FullFidelityRetention = TimeSpan.FromMinutes(5) },
            };
            Container container = await database.CreateContainerAsync(properties);
            using var iterator = container.GetChangeFeedIterator<ChangeFeedItem<JObject>>(
                ChangeFeedStartFrom.Now(), ChangeFeedMode.AllVersionsAndDeletes);
            await iterator.ReadNextAsync();
            await container.CreateItemAsync(new { id = "1", pk = "a", n = 1 });
            await container.UpsertItemAsync(new { id = "1", pk = "a", n = 2 });
            await container.DeleteItemAsync<JObject>("1", "a".Pk());
            var found = new List<string>();
            for (var page = await iterator.ReadNextAsync(); page.StatusCode == HttpStatusCode.OK; page = await iterator.ReadNextAsync())
            {
                found.AddRange(page.Select(each => $"{each.Metadata.OperationType}:{each.Current?["n"]}"));
            }
            Check.Same(["Create:1", "Replace:2", "Delete:"], found);
        });
    }

    public static async Task Until(Func<bool> holds)
    {
        for (var tries = 0; tries < 2400; tries++)
        {
            if (holds())
            {
                return;
            }
            await Task.Delay(100);
        }
        throw new InvalidOperationException("it did not come about in time");
    }
}
