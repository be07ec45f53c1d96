package main

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func readMany() {
	withDatabase("readmany", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("many"), 20000)
		for n := range 200 {
			create(container, item{"id": fmt.Sprintf("m%d", n), "pk": fmt.Sprintf("k%d", n%20), "n": n})
		}
		identity := func(n int) azcosmos.ItemIdentity {
			return azcosmos.ItemIdentity{ID: fmt.Sprintf("m%d", n), PartitionKey: textKey(fmt.Sprintf("k%d", n%20))}
		}
		for _, count := range []int{0, 1, 2, 50, 200} {
			check(fmt.Sprintf("read many: %d items", count), func() {
				identities := []azcosmos.ItemIdentity{}
				for n := range count {
					identities = append(identities, identity(n))
				}
				response := must(container.ReadManyItems(ctx, identities, nil))
				distinct := map[any]bool{}
				for _, each := range values(response.Items) {
					distinct[each.(item)["n"]] = true
				}
				equal([]int{len(response.Items), len(distinct)}, []int{count, count})
				that(count == 0 || response.RequestCharge > 0, "no charge")
			})
		}
		check("read many: what is not there is left out", func() {
			absent := azcosmos.ItemIdentity{ID: "absent", PartitionKey: textKey("k1")}
			equal(len(must(container.ReadManyItems(ctx, []azcosmos.ItemIdentity{identity(1), absent, identity(2)}, nil)).Items), 2)
		})
		check("read many: one at a time", func() {
			options := &azcosmos.ReadManyItemsOptions{MaxConcurrency: pointer(int32(1))}
			equal(len(must(container.ReadManyItems(ctx, []azcosmos.ItemIdentity{identity(1), identity(22), identity(43)}, options)).Items), 3)
		})
	})
	withDatabase("readmanykeys", func(database *azcosmos.DatabaseClient) {
		check("read many: keys of three levels", func() {
			properties := azcosmos.ContainerProperties{ID: "levels", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
				Paths: []string{"/a", "/b", "/c"}, Kind: azcosmos.PartitionKeyKindMultiHash, Version: 2}}
			container := newContainer(database, properties, 20000)
			identities := []azcosmos.ItemIdentity{}
			for n := range 12 {
				pk := textKey(fmt.Sprint("t", n%2)).AppendString(fmt.Sprint("u", n%3)).AppendNumber(float64(n))
				must(container.CreateItem(ctx, pk, encode(item{"id": fmt.Sprint(n), "a": fmt.Sprint("t", n%2), "b": fmt.Sprint("u", n%3), "c": n}), nil))
				identities = append(identities, azcosmos.ItemIdentity{ID: fmt.Sprint(n), PartitionKey: pk})
			}
			equal(len(must(container.ReadManyItems(ctx, identities, nil)).Items), 12)
		})
		check("read many: keys of every type", func() {
			container := newContainer(database, hashed("typed"), 20000)
			identities := []azcosmos.ItemIdentity{}
			for n, pk := range []azcosmos.PartitionKey{textKey("x"), azcosmos.NewPartitionKeyNumber(2.5), azcosmos.NewPartitionKeyBool(true), azcosmos.NullPartitionKey} {
				value := []any{"x", 2.5, true, nil}[n]
				must(container.CreateItem(ctx, pk, encode(item{"id": fmt.Sprint(n), "pk": value}), nil))
				identities = append(identities, azcosmos.ItemIdentity{ID: fmt.Sprint(n), PartitionKey: pk})
			}
			equal(len(must(container.ReadManyItems(ctx, identities, nil)).Items), 4)
		})
		check("read many: keys of the first version, in one physical partition", func() {
			properties := azcosmos.ContainerProperties{ID: "v1", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 1}}
			container := newContainer(database, properties, 400)
			identities := []azcosmos.ItemIdentity{}
			for n := range 20 {
				create(container, item{"id": fmt.Sprint(n), "pk": fmt.Sprint("k", n)})
				identities = append(identities, azcosmos.ItemIdentity{ID: fmt.Sprint(n), PartitionKey: textKey(fmt.Sprint("k", n))})
			}
			equal(len(must(container.ReadManyItems(ctx, identities, nil)).Items), 20)
		})
	})
}
