// The client goes on when a container is exchanged for a copy with another partition key: no write is lost or refused.

using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Exchange
{
    const int After = 60;

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "exchange", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk", 10_000);
            await Check.That("exchange: a writer goes on over it and finds every item", () => Under(server, client, database, container));
        });
    }

    static JObject Item(int n) => JObject.FromObject(new { id = $"{n}", pk = $"p{n % 5}", t = $"t{n % 7}", n });

    static async Task Under(Server server, CosmosClient client, Database database, Container container)
    {
        var written = 0;
        for (; written < 100; written++)
        {
            await container.CreateItemAsync(Item(written));
        }
        var plan = new { source = $"{database.Id}/c", target = $"{database.Id}/before", partitionKey = "/t", @switch = true };
        var (status, begun) = await server.Signed(HttpMethod.Post, "_pleiad/v1/copies", "copies", "_pleiad/v1", plan);
        Check.True(status == 202, $"the copy was accepted: {status} {begun}");
        var path = $"_pleiad/v1/copies/{begun["id"]}";
        var state = "";
        for (var left = After; left > 0;)
        {
            var answer = await container.CreateItemAsync(Item(written));
            Check.True(answer.StatusCode == HttpStatusCode.Created, "every create is done once");
            written += 1;
            if (state != "done")
            {
                var (_, told) = await server.Signed(HttpMethod.Get, path, "copies", path);
                state = (string)told["state"]!;
                Check.True(state != "failed", $"the copy goes well: {told}");
            }
            else
            {
                left -= 1;
            }
        }
        for (var n = 0; n < written; n++)
        {
            var item = (await container.ReadItemAsync<JObject>($"{n}", new PartitionKey($"t{n % 7}"))).Resource;
            Check.True((int)item["n"]! == n, "an item is found by its new key");
        }
        var count = (await container.Query<int>("SELECT VALUE COUNT(1) FROM c")).Single();
        Check.True(count == written, $"{written} items were created, {count} are there");
    }
}
