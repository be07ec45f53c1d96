// One check is one line of output. A check that throws has failed; the rest of its section still runs.

using System.Globalization;
using System.Net;
using System.Security.Cryptography;
using System.Text;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

static class Check
{
    public static int Passed { get; private set; }
    public static int Failed { get; private set; }

    public static async Task That(string name, Func<Task> action)
    {
        try
        {
            await action().WaitAsync(TimeSpan.FromSeconds(300));
            Passed += 1;
            Console.WriteLine($"ok    {name}");
        }
        catch (Exception error)
        {
            Fail(name, error);
        }
    }

    public static void Fail(string name, Exception error)
    {
        Failed += 1;
        Console.WriteLine($"FAIL  {name}: {Describe(error)}");
    }

    /// <summary>Awaits the action and requires that the service refuses it with this status.</summary>
    public static async Task<CosmosException> Refused(HttpStatusCode status, Func<Task> action)
    {
        try
        {
            await action();
        }
        catch (CosmosException error) when (error.StatusCode == status)
        {
            return error;
        }
        throw new InvalidOperationException($"expected a refusal with {(int)status}");
    }

    public static void Equal<T>(T wanted, T found, string what = "")
    {
        if (!EqualityComparer<T>.Default.Equals(wanted, found))
        {
            throw new InvalidOperationException($"{what} expected {wanted}, found {found}");
        }
    }

    /// <summary>Compares lists by their texts.</summary>
    public static void Same<T>(IEnumerable<T> wanted, IEnumerable<T> found, string what = "") =>
        Equal(string.Join(", ", wanted), string.Join(", ", found), what);

    public static void True(bool holds, string what)
    {
        if (!holds)
        {
            throw new InvalidOperationException($"it is not true that {what}");
        }
    }

    static string Describe(Exception error)
    {
        var status = error is CosmosException cosmos ? $"[{(int)cosmos.StatusCode}/{cosmos.SubStatusCode}] " : "";
        var text = status + string.Join(' ', error.Message.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries));
        return text.Length > 400 ? text[..400] : text;
    }
}

/// <summary>The server under check, and what every section needs of it.</summary>
sealed class Server(string endpoint, string key, string mode)
{
    static readonly HttpClient Http = new(
        new HttpClientHandler { ServerCertificateCustomValidationCallback = (_, _, _, _) => true });
    int databases;

    public bool IsDirect => mode == "direct";

    public CosmosClient Client(Action<CosmosClientOptions>? change = null, string? token = null)
    {
        var options = new CosmosClientOptions { ServerCertificateCustomValidationCallback = (_, _, _) => true };
        if (!IsDirect)
        {
            options.ConnectionMode = ConnectionMode.Gateway; // what a client does that is told nothing is direct mode
        }
        change?.Invoke(options);
        return new CosmosClient(endpoint, token ?? key, options);
    }

    /// <summary>Runs the action with a database of its own, deleted afterwards.</summary>
    public async Task WithDatabase(CosmosClient client, string label, Func<Database, Task> action)
    {
        var id = $"check-{label}-{Environment.ProcessId}-{++databases}";
        Database database = await client.CreateDatabaseAsync(id);
        try
        {
            await action(database);
        }
        finally
        {
            await database.DeleteStreamAsync();
        }
    }

    /// <summary>A signed call of the admin API, on a container.</summary>
    public Task<(int Status, JObject Body)> Admin(HttpMethod method, Container container, string name, object? body = null)
    {
        var link = $"_pleiad/v1/dbs/{container.Database.Id}/colls/{container.Id}";
        return Signed(method, $"{link}/{name}", name, link, body);
    }

    /// <summary>A signed call of the admin API: its path, and the type and the link that the signature is of.</summary>
    public async Task<(int Status, JObject Body)> Signed(HttpMethod method, string path, string type, string link, object? body = null)
    {
        var date = DateTime.UtcNow.ToString("r", CultureInfo.InvariantCulture);
        var text = $"{method.Method.ToLowerInvariant()}\n{type}\n{link}\n{date.ToLowerInvariant()}\n\n";
        var proof = Convert.ToBase64String(HMACSHA256.HashData(Convert.FromBase64String(key), Encoding.UTF8.GetBytes(text)));
        using var request = new HttpRequestMessage(method, new Uri(new Uri(endpoint), $"/{path}"));
        request.Headers.TryAddWithoutValidation("authorization", Uri.EscapeDataString($"type=master&ver=1.0&sig={proof}"));
        request.Headers.TryAddWithoutValidation("x-ms-date", date);
        if (body is not null)
        {
            request.Content = new StringContent(JObject.FromObject(body).ToString(), Encoding.UTF8, "application/json");
        }
        using var answer = await Http.SendAsync(request);
        return ((int)answer.StatusCode, JObject.Parse(await answer.Content.ReadAsStringAsync()));
    }

    /// <summary>Splits the first physical partition of a container.</summary>
    public async Task Split(Container container)
    {
        var (_, state) = await Admin(HttpMethod.Get, container, "partitions");
        var (status, answer) = await Admin(
            HttpMethod.Post, container, "split", new { partition = (string)state["partitions"]![0]!["id"]! });
        Check.True(status is 201 or 202, $"the split was accepted: {status} {answer}");
    }
}

static class Shortcuts
{
    public static async Task<List<T>> All<T>(this FeedIterator<T> iterator, Action<FeedResponse<T>>? look = null)
    {
        var found = new List<T>();
        using (iterator)
        {
            while (iterator.HasMoreResults)
            {
                var page = await iterator.ReadNextAsync();
                look?.Invoke(page);
                found.AddRange(page);
            }
        }
        return found;
    }

    public static Task<List<T>> Query<T>(this Container container, string text, QueryRequestOptions? options = null) =>
        container.GetItemQueryIterator<T>(text, null, options).All();

    public static async Task<T> One<T>(this Container container, string text, QueryRequestOptions? options = null) =>
        (await container.Query<T>(text, options)).Single();

    public static MemoryStream Stream(this string text) => new(Encoding.UTF8.GetBytes(text));

    public static string Text(this Stream stream)
    {
        using var reader = new StreamReader(stream);
        return reader.ReadToEnd();
    }

    public static PartitionKey Pk(this string value) => new(value);
}
