// The client goes on through splits: bulk, batches, queries and the change feed processor lose nothing.

using System.Collections.Concurrent;
using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Splits
{
    const int Count = 1500;
    const int First = 100;

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        using var bulkClient = server.Client(options => options.AllowBulkExecution = true);
        await server.WithDatabase(client, "splits", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk", 6_000);
            var bulk = bulkClient.GetContainer(database.Id, container.Id);
            // Every logical partition is there before the first split: one alone cannot be divided.
            await Create(bulk, 0, First);
            await Under(server, database, container, bulk);
            await Afterwards(container);
        });
    }

    static async Task Create(Container bulk, int start, int count)
    {
        var answers = await Task.WhenAll(Enumerable.Range(start, count).Select(n => bulk.CreateItemAsync(Bulk.Item(n), Bulk.Key(n).Pk())));
        Check.True(answers.All(each => each.StatusCode == HttpStatusCode.Created), "every create is done once");
    }

    static async Task Under(Server server, Database database, Container container, Container bulk)
    {
        Container leases = await database.CreateContainerAsync("leases", "/id");
        var seen = new ConcurrentDictionary<string, bool>();
        var processor = container
            .GetChangeFeedProcessorBuilder<JObject>("splits", (IReadOnlyCollection<JObject> changes, CancellationToken _) =>
            {
                foreach (var change in changes)
                {
                    seen[$"{change["pk"]}/{change["id"]}"] = true;
                }
                return Task.CompletedTask;
            })
            .WithInstanceName("one").WithLeaseContainer(leases)
            .WithStartTime(DateTime.MinValue.ToUniversalTime()).WithPollInterval(TimeSpan.FromMilliseconds(200)).Build();
        await processor.StartAsync();
        await Check.That("splits: bulk and batches while partitions split", async () =>
        {
            var writes = Task.Run(async () =>
            {
                for (var start = First; start < Count; start += 100)
                {
                    await Create(bulk, start, 100);
                }
            });
            var batches = Task.Run(async () =>
            {
                for (var n = 0; n < 50; n++)
                {
                    using var answer = await container.CreateTransactionalBatch(Bulk.Key(n).Pk())
                        .UpsertItem(new { id = "batch", pk = Bulk.Key(n), step = n }).ReadItem("batch").ExecuteAsync();
                    Check.True(answer.IsSuccessStatusCode, $"batch {n}: {answer.StatusCode} {answer.ErrorMessage}");
                }
            });
            for (var splits = 0; splits < 3; splits++)
            {
                await server.Split(container);
                await Task.Delay(300);
            }
            await Task.WhenAll(writes, batches);
        });
        await Check.That("splits: the processor has seen everything", () => ChangeFeed.Until(() => seen.Count == Count + 50));
        await processor.StopAsync();
    }

    static async Task Afterwards(Container container)
    {
        await Check.That("splits: nothing is lost or twice", async () =>
        {
            var found = await container.Query<int>("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n");
            Check.Same(Enumerable.Range(0, Count), found);
            Check.Equal(Count, await container.One<int>("SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.n)"));
        });
        await Check.That("splits: the client finds the new ranges", async () =>
            Check.Equal(4, (await container.GetFeedRangesAsync()).Count));
    }
}
