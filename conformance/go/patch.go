package main

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func patch() {
	withDatabase("patch", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("patch"), 400)
		a := textKey("a")
		create(container, item{"id": "1", "pk": "a", "n": 1, "list": []int{1, 3}, "inner": item{"x": "y"}})
		apply := func(build func(*azcosmos.PatchOperations), options *azcosmos.ItemOptions) (azcosmos.ItemResponse, error) {
			var operations azcosmos.PatchOperations
			build(&operations)
			return container.PatchItem(ctx, a, "1", operations, options)
		}
		whole := &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
		check("patch: add, set, replace, remove and increment at once", func() {
			found := decode(must(apply(func(p *azcosmos.PatchOperations) {
				p.AppendAdd("/list/1", 2)
				p.AppendAdd("/list/-", 4)
				p.AppendSet("/new", item{"deep": true})
				p.AppendReplace("/inner/x", "z")
				p.AppendIncrement("/n", 41)
			}, whole)).Value)
			equal(found["list"], []any{1.0, 2.0, 3.0, 4.0})
			equal([]any{found["n"], found["inner"], found["new"]}, []any{42.0, item{"x": "z"}, item{"deep": true}})
			found = decode(must(apply(func(p *azcosmos.PatchOperations) { p.AppendRemove("/new") }, whole)).Value)
			equal(found["new"], nil)
		})
		check("patch: answers without a body unless it is asked for", func() {
			response := must(apply(func(p *azcosmos.PatchOperations) { p.AppendIncrement("/n", 1) }, nil))
			equal([]any{len(response.Value), response.RawResponse.StatusCode}, []any{0, 200})
		})
		check("patch: a condition that does not hold is 412 and changes nothing", func() {
			response, err := apply(func(p *azcosmos.PatchOperations) {
				p.SetCondition("FROM c WHERE c.n = 0")
				p.AppendSet("/n", 7)
			}, nil)
			refused(412, response, err)
			found := decode(must(apply(func(p *azcosmos.PatchOperations) {
				p.SetCondition("FROM c WHERE c.n = 43")
				p.AppendSet("/n", 44)
			}, whole)).Value)
			equal(found["n"], 44.0)
		})
		check("patch: another etag is refused", func() {
			response, err := apply(func(p *azcosmos.PatchOperations) { p.AppendSet("/n", 1) }, &azcosmos.ItemOptions{IfMatchEtag: pointer(azcore.ETag("\"other\""))})
			refused(412, response, err)
		})
		check("patch: one operation that cannot be done undoes all", func() {
			response, err := apply(func(p *azcosmos.PatchOperations) {
				p.AppendSet("/n", 1)
				p.AppendRemove("/absent")
			}, nil)
			refused(400, response, err)
			equal(decode(must(container.ReadItem(ctx, a, "1", nil)).Value)["n"], 44.0)
		})
		check("patch: the id and the partition key cannot be changed", func() {
			for _, path := range []string{"/id", "/pk"} {
				response, err := apply(func(p *azcosmos.PatchOperations) { p.AppendSet(path, "other") }, nil)
				refused(400, response, err)
			}
		})
		check("patch: more than ten operations are refused", func() {
			response, err := apply(func(p *azcosmos.PatchOperations) {
				for range 11 {
					p.AppendIncrement("/n", 1)
				}
			}, nil)
			refused(400, response, err)
		})
		check("patch: an item that is not there is not found", func() {
			var operations azcosmos.PatchOperations
			operations.AppendSet("/n", 1)
			response, err := container.PatchItem(ctx, a, "absent", operations, nil)
			refused(404, response, err)
		})
	})
}
