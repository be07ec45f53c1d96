package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// What Entra would hand out, made as the emulators take it: the account key stands where the signature does.
type localCredential struct{ secret string }

func (c localCredential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	now := time.Now()
	claims := encode(item{"aud": "https://localhost.localhost", "iss": "https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(), "appid": "localhost", "oid": "96313034-4739-43cb-93cd-74193adbe5b6",
		"tid": "EmulatorFederation", "scp": "user_impersonation", "ver": "1.0", "sub": "localhost"})
	part := func(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }
	header := encode(item{"typ": "JWT", "alg": "RS256", "x5t": "CosmosEmulatorPrimaryMaster", "kid": "CosmosEmulatorPrimaryMaster"})
	token := part(header) + "." + part(claims) + "." + part([]byte(c.secret))
	return azcore.AccessToken{Token: token, ExpiresOn: now.Add(time.Hour)}, nil
}

func access() {
	withDatabase("access", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("guarded"), 400)
		create(container, item{"id": "1", "pk": "a"})
		a := textKey("a")
		with := func(client *azcosmos.Client) *azcosmos.ContainerClient {
			return must(client.NewContainer(database.ID(), container.ID()))
		}
		check("access: another key is refused, for reads and writes", func() {
			stranger := with(clientWithKey(base64.StdEncoding.EncodeToString([]byte("a key that is not the account's")), nil))
			response, err := stranger.ReadItem(ctx, a, "1", nil)
			refused(401, response, err)
			response, err = stranger.CreateItem(ctx, a, encode(item{"id": "2", "pk": "a"}), nil)
			refused(401, response, err)
		})
		check("access: the key for reads reads, queries and follows the feed", func() {
			reader := with(clientWithKey(readOnlyKey, nil))
			equal(decode(must(reader.ReadItem(ctx, a, "1", nil)).Value)["id"], "1")
			equal(len(query(reader, "SELECT * FROM c", a, nil)), 1)
			found, _ := follow(reader, azcosmos.ChangeFeedOptions{PartitionKey: &a, FeedRange: whole})
			equal(len(found), 1)
			must(reader.Read(ctx, nil))
		})
		check("access: the key for reads writes nothing", func() {
			client := clientWithKey(readOnlyKey, nil)
			reader := with(client)
			response, err := reader.CreateItem(ctx, a, encode(item{"id": "2", "pk": "a"}), nil)
			refused(403, response, err)
			response, err = reader.DeleteItem(ctx, a, "1", nil)
			refused(403, response, err)
			var operations azcosmos.PatchOperations
			operations.AppendSet("/n", 1)
			response, err = reader.PatchItem(ctx, a, "1", operations, nil)
			refused(403, response, err)
			writes := reader.NewTransactionalBatch(a)
			writes.UpsertItem(encode(item{"id": "2", "pk": "a"}), nil)
			batched, err := reader.ExecuteTransactionalBatch(ctx, writes, nil)
			refused(403, batched, err)
			made, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "never"}, nil)
			refused(403, made, err)
			dropped, err := reader.Delete(ctx, nil)
			refused(403, dropped, err)
		})
		check("access: a key may be changed in a client that works", func() {
			credential := must(azcosmos.NewKeyCredential(base64.StdEncoding.EncodeToString([]byte("wrong"))))
			client := must(azcosmos.NewClientWithKey(endpoint, credential, nil))
			response, err := with(client).ReadItem(ctx, a, "1", nil)
			refused(401, response, err)
			that(credential.Update(key) == nil, "the key cannot be changed")
		})
		check("access: a connection string", func() {
			client := must(azcosmos.NewClientFromConnectionString(fmt.Sprintf("AccountEndpoint=%s;AccountKey=%s;", endpoint, key), nil))
			equal(client.Endpoint(), endpoint)
			must(with(client).ReadItem(ctx, a, "1", nil))
		})
		check("access: an Entra token reads and writes items, and a forged one does not", func() {
			options := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{InsecureAllowCredentialWithHTTP: true}}
			known := with(must(azcosmos.NewClient(endpoint, localCredential{key}, options)))
			must(known.UpsertItem(ctx, a, encode(item{"id": "entra", "pk": "a"}), nil))
			equal(decode(must(known.ReadItem(ctx, a, "entra", nil)).Value)["id"], "entra")
			forged := with(must(azcosmos.NewClient(endpoint, localCredential{"forged"}, options)))
			response, err := forged.ReadItem(ctx, a, "entra", nil)
			refused(401, response, err)
		})
	})
}
