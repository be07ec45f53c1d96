// Ids with characters that paths treat in their own way, created and then addressed.

using System.Net;
using Microsoft.Azure.Cosmos;

static class Ids
{
    // What the service's gateway answers to the creation, and to a read, a replacement and a deletion by that id. In direct mode
    // most of them are in no path, and an item may always be found.
    static readonly (string Name, string Id, int Created, int[] Addressed)[] Table =
    [
        ("plain", "plain", 201, [200]),
        ("a space inside", "a b", 201, [200]),
        ("a space at the front", " a", 201, [200]),
        ("a space at the end", "a ", 201, [200, 401, 404]),
        ("percent 20", "a%20b", 201, [200, 401]),
        ("a percent sign", "100%", 201, [200]),
        ("plus", "a+b", 201, [200]),
        ("ampersand, equals, semicolon, colon", "a&b=c;d:e", 201, [200]),
        ("quotes and brackets", "'\"[]{}()<>", 201, [200]),
        ("letters beyond ASCII", "Käthe 日本🙂", 201, [200]),
        ("a question mark", "a?b", 201, [200]),
        ("a slash", "a/b", 201, [404]),
        ("a number sign", "a#b", 201, [401]),
        ("a backslash", "a\\b", 400, []),
        ("a tab", "a\tb", 201, [200, 400]),
        ("a line feed", "a\nb", 201, [200, 400]),
        ("a carriage return", "a\rb", 201, [200, 400]),
        ("1,023 characters", new string('x', 1023), 201, [200]),
        ("1,024 characters", new string('x', 1024), 400, []),
    ];

    public static async Task Run(Server server)
    {
        using var client = server.Client();
        await server.WithDatabase(client, "ids", async database =>
        {
            Container container = await database.CreateContainerAsync("c", "/pk");
            foreach (var (name, id, created, addressed) in Table)
            {
                await Check.That($"id: {name}", () => One(container, id, created, server.IsDirect ? [.. addressed, 200] : addressed));
            }
        });
    }

    static async Task One(Container container, string id, int created, int[] addressed)
    {
        var text = Newtonsoft.Json.JsonConvert.SerializeObject(new { id, pk = "a" });
        using var made = await container.CreateItemStreamAsync(text.Stream(), "a".Pk());
        Check.Equal(created, (int)made.StatusCode, "create");
        if (made.StatusCode != HttpStatusCode.Created)
        {
            return;
        }
        using var read = await container.ReadItemStreamAsync(id, "a".Pk());
        Check.True(addressed.Contains((int)read.StatusCode), $"a read is one of {string.Join(", ", addressed)}: {(int)read.StatusCode}");
        using var replaced = await container.ReplaceItemStreamAsync(text.Stream(), id, "a".Pk());
        Check.Equal(read.StatusCode, replaced.StatusCode, "replace");
        using var deleted = await container.DeleteItemStreamAsync(id, "a".Pk());
        Check.Equal(read.IsSuccessStatusCode ? HttpStatusCode.NoContent : read.StatusCode, deleted.StatusCode, "delete");
    }
}
