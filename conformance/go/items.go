package main

import (
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func items() {
	withDatabase("items", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("items"), 400)
		writes(container)
		etags(container)
		keysOfEveryType(container)
		itemOptions(database, container)
		jsonValues(container)
	})
}

func writes(container *azcosmos.ContainerClient) {
	a := textKey("a")
	check("items: a write answers without a body unless it is asked for", func() {
		silent := create(container, item{"id": "1", "pk": "a", "n": 1})
		equal(silent.RawResponse.StatusCode, 201)
		equal(len(silent.Value), 0)
		that(silent.ETag != "" && silent.SessionToken != nil && silent.RequestCharge > 0, "no etag, session or charge")
		told := must(container.CreateItem(ctx, a, encode(item{"id": "2", "pk": "a", "n": 2}), &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}))
		found := decode(told.Value)
		equal([]any{found["id"], found["n"], found["_etag"]}, []any{"2", 2.0, string(told.ETag)})
	})
	check("items: a second one of the id is a conflict", func() {
		response, err := container.CreateItem(ctx, a, encode(item{"id": "1", "pk": "a"}), nil)
		refused(409, response, err)
	})
	check("items: read gives what was written, with the system properties", func() {
		found := decode(must(container.ReadItem(ctx, a, "1", nil)).Value)
		equal([]any{found["id"], found["pk"], found["n"]}, []any{"1", "a", 1.0})
		for _, name := range []string{"_rid", "_self", "_etag", "_ts"} {
			that(found[name] != nil, "no %s", name)
		}
	})
	check("items: replace, upsert and delete", func() {
		whole := &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
		equal(decode(must(container.ReplaceItem(ctx, a, "1", encode(item{"id": "1", "pk": "a", "n": 10}), whole)).Value)["n"], 10.0)
		equal(must(container.UpsertItem(ctx, a, encode(item{"id": "1", "pk": "a", "n": 11}), nil)).RawResponse.StatusCode, 200)
		equal(must(container.UpsertItem(ctx, a, encode(item{"id": "3", "pk": "a", "n": 3}), nil)).RawResponse.StatusCode, 201)
		equal(must(container.DeleteItem(ctx, a, "3", nil)).RawResponse.StatusCode, 204)
		response, err := container.ReadItem(ctx, a, "3", nil)
		refused(404, response, err)
	})
	check("items: an item that is not there is neither replaced nor deleted", func() {
		response, err := container.ReplaceItem(ctx, a, "absent", encode(item{"id": "absent", "pk": "a"}), nil)
		refused(404, response, err)
		response, err = container.DeleteItem(ctx, a, "absent", nil)
		refused(404, response, err)
	})
	check("items: one of another logical partition is not found", func() {
		response, err := container.ReadItem(ctx, textKey("b"), "1", nil)
		refused(404, response, err)
	})
	check("items: a partition key that is not the item's is refused", func() {
		response, err := container.CreateItem(ctx, textKey("b"), encode(item{"id": "9", "pk": "a"}), nil)
		refused(400, response, err)
	})
	check("items: what is no JSON, or has no id, is refused", func() {
		response, err := container.CreateItem(ctx, a, []byte("{\"id\":"), nil)
		refused(400, response, err)
		response, err = container.CreateItem(ctx, a, encode(item{"pk": "a"}), nil)
		refused(400, response, err)
	})
	check("items: one of more than 2 MB is refused with 413", func() {
		response, err := container.CreateItem(ctx, a, encode(item{"id": "big", "pk": "a", "text": strings.Repeat("x", 2<<20)}), nil)
		refused(413, response, err)
	})
	check("items: a container that is not there is not found", func() {
		response, err := must(newClient(nil).NewContainer("absent", "absent")).ReadItem(ctx, a, "1", nil)
		refused(404, response, err)
	})
}

func etags(container *azcosmos.ContainerClient) {
	a := textKey("a")
	check("etags: each write makes a new one, and the old one is refused", func() {
		first := create(container, item{"id": "etag", "pk": "a", "n": 0}).ETag
		with := func(etag azcore.ETag) *azcosmos.ItemOptions { return &azcosmos.ItemOptions{IfMatchEtag: &etag} }
		second := must(container.ReplaceItem(ctx, a, "etag", encode(item{"id": "etag", "pk": "a", "n": 1}), with(first))).ETag
		that(first != second, "the same etag")
		response, err := container.ReplaceItem(ctx, a, "etag", encode(item{"id": "etag", "pk": "a", "n": 2}), with(first))
		refused(412, response, err)
		response, err = container.UpsertItem(ctx, a, encode(item{"id": "etag", "pk": "a", "n": 2}), with(first))
		refused(412, response, err)
		response, err = container.DeleteItem(ctx, a, "etag", with(first))
		refused(412, response, err)
		equal(decode(must(container.ReadItem(ctx, a, "etag", nil)).Value)["n"], 1.0)
		must(container.DeleteItem(ctx, a, "etag", with(second)))
	})
}

func keysOfEveryType(container *azcosmos.ContainerClient) {
	for name, kind := range map[string]struct {
		pk    azcosmos.PartitionKey
		value any
	}{
		"string":               {textKey("k"), "k"},
		"empty string":         {textKey(""), ""},
		"letters beyond ASCII": {textKey("Größe 漢字"), "Größe 漢字"},
		"long string":          {textKey(strings.Repeat("k", 1000)), strings.Repeat("k", 1000)},
		"number":               {azcosmos.NewPartitionKeyNumber(1.5), 1.5},
		"negative number":      {azcosmos.NewPartitionKeyNumber(-7), -7.0},
		"boolean":              {azcosmos.NewPartitionKeyBool(false), false},
		"null":                 {azcosmos.NullPartitionKey, nil},
	} {
		check("keys: "+name, func() {
			must(container.CreateItem(ctx, kind.pk, encode(item{"id": "typed", "pk": kind.value}), nil))
			equal(decode(must(container.ReadItem(ctx, kind.pk, "typed", nil)).Value)["pk"], kind.value)
			equal(query(container, "SELECT VALUE c.pk FROM c WHERE c.id = 'typed'", kind.pk, nil), []any{kind.value})
			must(container.DeleteItem(ctx, kind.pk, "typed", nil))
		})
	}
}

func itemOptions(database *azcosmos.DatabaseClient, container *azcosmos.ContainerClient) {
	a := textKey("a")
	check("sessions: a token of another client is obeyed, and one that is no token refused", func() {
		token := create(container, item{"id": "session", "pk": "a"}).SessionToken
		read := must(again(database, container).ReadItem(ctx, a, "session", &azcosmos.ItemOptions{SessionToken: token}))
		equal(decode(read.Value)["id"], "session")
		response, err := container.ReadItem(ctx, a, "session", &azcosmos.ItemOptions{SessionToken: pointer("no token")})
		refused(400, response, err)
	})
	for _, level := range []azcosmos.ConsistencyLevel{azcosmos.ConsistencyLevelSession, azcosmos.ConsistencyLevelConsistentPrefix, azcosmos.ConsistencyLevelEventual} {
		check("consistency: a read at "+string(level), func() {
			equal(decode(must(container.ReadItem(ctx, a, "1", &azcosmos.ItemOptions{ConsistencyLevel: &level})).Value)["id"], "1")
		})
	}
	check("consistency: a level above the account's is refused", func() {
		response, err := container.ReadItem(ctx, a, "1", &azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelStrong.ToPtr()})
		refused(400, response, err)
	})
	check("options: indexing directive, priority, throughput bucket and dedicated gateway are taken", func() {
		options := &azcosmos.ItemOptions{
			IndexingDirective: azcosmos.IndexingDirectiveExclude.ToPtr(), PriorityLevel: pointer(azcosmos.PriorityLevelLow), ThroughputBucket: pointer(int32(1)),
			DedicatedGatewayRequestOptions: &azcosmos.DedicatedGatewayRequestOptions{BypassIntegratedCache: true}}
		must(container.UpsertItem(ctx, a, encode(item{"id": "options", "pk": "a"}), options))
		options.IndexingDirective = nil
		equal(decode(must(container.ReadItem(ctx, a, "options", options)).Value)["id"], "options")
	})
	check("options: a trigger that is not there is refused", func() {
		response, err := container.CreateItem(ctx, a, encode(item{"id": "t", "pk": "a"}), &azcosmos.ItemOptions{PreTriggers: []string{"absent"}})
		refused(400, response, err)
	})
	check("options: a client may ask for bodies on every write", func() {
		client := newClient(&azcosmos.ClientOptions{EnableContentResponseOnWrite: true})
		told := must(must(client.NewContainer(database.ID(), container.ID())).UpsertItem(ctx, a, encode(item{"id": "told", "pk": "a"}), nil))
		equal(decode(told.Value)["id"], "told")
	})
	check("diagnostics: tell of the request, also of one that failed", func() {
		that(len(must(container.ReadItem(ctx, a, "1", nil)).Diagnostics.String()) > 2, "no diagnostics")
		_, err := container.ReadItem(ctx, a, "absent", nil)
		_, isThere := azcosmos.DiagnosticsFromError(err)
		that(isThere, "no diagnostics of the failure")
	})
}

func jsonValues(container *azcosmos.ContainerClient) {
	check("values: JSON comes back as it was written", func() {
		nested := item{"a": []any{1.0, "two", nil, true, item{"b": []any{}}}, "c": item{}, "text": "\u0001 \" \\ / 漢 🦊",
			"small": 1e-300, "large": 1.7976931348623157e308, "negative": -0.1, "whole": 9007199254740991.0}
		value := item{"id": "json", "pk": "j", "nested": nested}
		create(container, value)
		equal(decode(must(container.ReadItem(ctx, textKey("j"), "json", nil)).Value)["nested"], any(nested))
		equal(query(container, "SELECT VALUE c.nested FROM c", textKey("j"), nil), []any{nested})
	})
	check("values: an item of many properties, and one of deep ones", func() {
		wide, deep := item{"id": "wide", "pk": "j"}, any("end")
		for n := range 1000 {
			wide[fmt.Sprintf("p%d", n)] = n
		}
		for range 100 {
			deep = item{"d": deep}
		}
		create(container, wide)
		create(container, item{"id": "deep", "pk": "j", "d": deep})
		equal(decode(must(container.ReadItem(ctx, textKey("j"), "wide", nil)).Value)["p999"], 999.0)
		equal(decode(must(container.ReadItem(ctx, textKey("j"), "deep", nil)).Value)["d"], deep)
	})
}

func ids() {
	withDatabase("ids", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("ids"), 400)
		for _, id := range []string{"plain", "with blank", "Größe", "漢字", "🦊", "a+b", "a%b", "%20", "a&b=c", "a'b\"c", "a;b,c:d", "(a)[b]{c}", "a?b", "~a!b@c$d^e*f", "trailing.", strings.Repeat("i", 255)} {
			check("ids: "+id[:min(len(id), 24)], func() {
				create(container, item{"id": id, "pk": "a"})
				equal(decode(must(container.ReadItem(ctx, textKey("a"), id, nil)).Value)["id"], id)
				must(container.ReplaceItem(ctx, textKey("a"), id, encode(item{"id": id, "pk": "a", "n": 1}), nil))
				must(container.DeleteItem(ctx, textKey("a"), id, nil))
			})
		}
		check("ids: a backslash, or more than 1,023 bytes, is refused", func() {
			for _, id := range []string{"a\\b", strings.Repeat("i", 1024)} {
				response, err := container.CreateItem(ctx, textKey("a"), encode(item{"id": id, "pk": "a"}), nil)
				refused(400, response, err)
			}
		})
	})
}
