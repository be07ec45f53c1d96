// Uses the operations of the official .NET client against a server, and says what came back wrong.
// Variables: ACCOUNT_HOST, ACCOUNT_KEY, CONNECTION_MODE, gateway or direct, and SECTIONS, names separated by commas (all
// of them without).
// Exit code 1 when a check failed.

var sections = new (string Name, Func<Server, Task> Run)[]
{
    ("catalog", Catalog.Run),
    ("items", Items.Run),
    ("ids", Ids.Run),
    ("queries", Queries.Run),
    ("paging", Paging.Run),
    ("changefeed", ChangeFeed.Run),
    ("batch", Batch.Run),
    ("bulk", Bulk.Run),
    ("scripts", Scripts.Run),
    ("binary", BinaryEncoding.Run),
    ("ef", EntityFramework.Run),
    ("splits", Splits.Run),
    ("exchange", Exchange.Run),
};
var (host, key) = (Environment.GetEnvironmentVariable("ACCOUNT_HOST"), Environment.GetEnvironmentVariable("ACCOUNT_KEY"));
var names = Environment.GetEnvironmentVariable("SECTIONS");
var asked = names?.Split(',', StringSplitOptions.TrimEntries) ?? sections.Select(each => each.Name).ToArray();
var unknown = asked.Except(sections.Select(each => each.Name)).ToArray();
if (host is null || key is null || unknown.Length > 0)
{
    Console.Error.WriteLine($"set ACCOUNT_HOST, ACCOUNT_KEY and SECTIONS; there are {string.Join(", ", sections.Select(each => each.Name))}");
    return 2;
}

var server = new Server(host, key, Environment.GetEnvironmentVariable("CONNECTION_MODE") ?? "gateway");
foreach (var section in sections.Where(each => asked.Contains(each.Name)))
{
    try
    {
        await section.Run(server);
    }
    catch (Exception error)
    {
        // What a section sets up for its checks failed, so none of the rest could be checked.
        Check.Fail($"{section.Name}: could not be set up", error);
    }
}
Console.WriteLine($"{Check.Passed} passed, {Check.Failed} failed");
return Check.Failed == 0 ? 0 : 1;
