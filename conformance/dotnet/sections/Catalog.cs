// Databases, containers, throughput, users and permissions.

using System.Collections.ObjectModel;
using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Catalog
{
    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await Check.That("account: read", async () =>
        {
            var account = await client.ReadAccountAsync();
            Check.True(account.ReadableRegions.Any(), "the account has a region to read");
        });
        await server.WithDatabase(client, "catalog", async database =>
        {
            await Databases(client, database);
            await Containers(database);
            await Throughput(client, server);
            await Users(server, database);
        });
    }

    static async Task Databases(CosmosClient client, Database database)
    {
        await Check.That("database: create one that exists", () =>
            Check.Refused(HttpStatusCode.Conflict, () => client.CreateDatabaseAsync(database.Id)));
        await Check.That("database: create if it does not exist", async () =>
            Check.Equal(HttpStatusCode.OK, (await client.CreateDatabaseIfNotExistsAsync(database.Id)).StatusCode));
        await Check.That("database: read", async () => Check.Equal(database.Id, (await database.ReadAsync()).Resource.Id));
        await Check.That("database: read one that does not exist", () =>
            Check.Refused(HttpStatusCode.NotFound, () => client.GetDatabase("missing").ReadAsync()));
        await Check.That("database: list", async () =>
        {
            var found = await client.GetDatabaseQueryIterator<DatabaseProperties>().All();
            Check.True(found.Any(each => each.Id == database.Id), "the database is listed");
        });
        await Check.That("database: query", async () =>
        {
            var query = new QueryDefinition("SELECT * FROM c WHERE c.id = @id").WithParameter("@id", database.Id);
            Check.Equal(1, (await client.GetDatabaseQueryIterator<DatabaseProperties>(query).All()).Count);
        });
    }

    static async Task Containers(Database database)
    {
        await Check.That("container: create with policies and read them", async () =>
        {
            var wanted = new ContainerProperties("rich", "/pk")
            {
                DefaultTimeToLive = 3600,
                UniqueKeyPolicy = new UniqueKeyPolicy { UniqueKeys = { new UniqueKey { Paths = { "/email" } } } },
            };
            wanted.IndexingPolicy.ExcludedPaths.Add(new ExcludedPath { Path = "/raw/*" });
            wanted.IndexingPolicy.CompositeIndexes.Add(
                [new() { Path = "/a" }, new() { Path = "/b", Order = CompositePathSortOrder.Descending }]);
            Container container = await database.CreateContainerAsync(wanted);
            var found = (await container.ReadContainerAsync()).Resource;
            Check.Equal(3600, found.DefaultTimeToLive);
            Check.Equal("/pk", found.PartitionKeyPath);
            Check.Equal("/email", found.UniqueKeyPolicy.UniqueKeys.Single().Paths.Single());
            Check.Equal(2, found.IndexingPolicy.CompositeIndexes.Single().Count);
            Check.True(found.IndexingPolicy.ExcludedPaths.Any(each => each.Path == "/raw/*"), "the path is excluded");
        });
        await Check.That("container: replace its properties", async () =>
        {
            var container = database.GetContainer("rich");
            var properties = (await container.ReadContainerAsync()).Resource;
            properties.DefaultTimeToLive = -1;
            Check.Equal(-1, (await container.ReplaceContainerAsync(properties)).Resource.DefaultTimeToLive);
        });
        await Check.That("container: one that exists", async () =>
        {
            await Check.Refused(HttpStatusCode.Conflict, () => database.CreateContainerAsync("rich", "/pk"));
            var answer = await database.CreateContainerIfNotExistsAsync("rich", "/pk");
            Check.Equal(HttpStatusCode.OK, answer.StatusCode);
        });
        await Check.That("container: a unique key is unique", async () =>
        {
            var container = database.GetContainer("rich");
            await container.CreateItemAsync(new { id = "1", pk = "a", email = "x" });
            await Check.Refused(HttpStatusCode.Conflict, () => container.CreateItemAsync(new { id = "2", pk = "a", email = "x" }));
        });
        await Check.That("container: hierarchical key", async () =>
        {
            var properties = new ContainerProperties("deep", new Collection<string> { "/a", "/b" });
            Container container = await database.CreateContainerAsync(properties);
            Check.Same(["/a", "/b"], (await container.ReadContainerAsync()).Resource.PartitionKeyPaths);
            var key = new PartitionKeyBuilder().Add("x").Add(2).Build();
            await container.CreateItemAsync(new { id = "1", a = "x", b = 2 }, key);
            Check.Equal("1", (string)(await container.ReadItemAsync<JObject>("1", key)).Resource["id"]!);
        });
        await Check.That("container: list and query", async () =>
        {
            var all = await database.GetContainerQueryIterator<ContainerProperties>().All();
            Check.Same(["deep", "rich"], all.Select(each => each.Id).Order());
            var some = await database.GetContainerQueryIterator<ContainerProperties>("SELECT * FROM c WHERE c.id = 'deep'").All();
            Check.Same(["deep"], some.Select(each => each.Id));
        });
        await Check.That("container: delete", async () =>
        {
            Check.Equal(HttpStatusCode.NoContent, (await database.GetContainer("deep").DeleteContainerAsync()).StatusCode);
            await Check.Refused(HttpStatusCode.NotFound, () => database.GetContainer("deep").ReadContainerAsync());
        });
    }

    static Task Throughput(CosmosClient client, Server server) => server.WithDatabase(client, "throughput", async database =>
    {
        await Check.That("throughput: manual, read and replaced", async () =>
        {
            Container container = await database.CreateContainerAsync("manual", "/pk", 500);
            Check.Equal(500, await container.ReadThroughputAsync());
            Check.Equal(700, (await container.ReplaceThroughputAsync(700)).Resource.Throughput);
        });
        await Check.That("throughput: autoscale", async () =>
        {
            Container container = await database.CreateContainerAsync(
                new ContainerProperties("auto", "/pk"), ThroughputProperties.CreateAutoscaleThroughput(4000));
            var found = (await container.ReadThroughputAsync(new RequestOptions())).Resource;
            Check.Equal(4000, found.AutoscaleMaxThroughput);
        });
        await Check.That("throughput: shared by a database", async () =>
        {
            Database shared = await client.CreateDatabaseAsync($"{database.Id}-shared", 600);
            Check.Equal(600, await shared.ReadThroughputAsync());
            Container inside = await shared.CreateContainerAsync("c", "/pk");
            Check.Equal(null, await inside.ReadThroughputAsync());
            await shared.DeleteAsync();
        });
    });

    static async Task Users(Server server, Database database)
    {
        Container container = await database.CreateContainerAsync("guarded", "/pk");
        await container.CreateItemAsync(new { id = "1", pk = "a" });
        await Check.That("users: create, read, list, replace, delete", async () =>
        {
            User user = await database.CreateUserAsync("u");
            Check.Equal("u", (await user.ReadAsync()).Resource.Id);
            Check.Equal("v", (await user.ReplaceAsync(new UserProperties("v"))).Resource.Id);
            var all = await database.GetUserQueryIterator<UserProperties>().All();
            Check.Same(["v"], all.Select(each => each.Id));
            await database.GetUser("v").DeleteAsync();
        });
        await Check.That("permissions: a token reads and does not write", async () =>
        {
            User user = await database.CreateUserAsync("reader");
            var permission = await user.CreatePermissionAsync(new PermissionProperties("p", PermissionMode.Read, container));
            using var client = server.Client(token: permission.Resource.Token);
            var seen = client.GetContainer(database.Id, container.Id);
            Check.Equal("1", (string)(await seen.ReadItemAsync<JObject>("1", "a".Pk())).Resource["id"]!);
            await Check.Refused(HttpStatusCode.Forbidden, () => seen.CreateItemAsync(new { id = "2", pk = "a" }, "a".Pk()));
        });
        await Check.That("a wrong key is refused", async () =>
        {
            using var client = server.Client(token: Convert.ToBase64String(new byte[64]));
            await Check.Refused(HttpStatusCode.Unauthorized, () => client.GetContainer(database.Id, container.Id).ReadContainerAsync());
        });
    }
}
