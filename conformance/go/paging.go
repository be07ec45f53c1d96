package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const tiedItems = 120

// Values of each type, most of them many times, and items that lack the property.
func mixed(n int) (any, bool) {
	switch n % 6 {
	case 0:
		return nil, false
	case 1:
		return nil, true
	case 2:
		return n%12 == 2, true
	case 3:
		return float64(n % 4), true
	default:
		return []string{"", "a", "ä", "b"}[n/6%4], true
	}
}

func rank(value any, isThere bool) int {
	if !isThere {
		return 0
	}
	switch value.(type) {
	case nil:
		return 1
	case bool:
		return 2
	case float64:
		return 3
	default:
		return 4
	}
}

// compared orders values as the query language does: by type, then by value.
func compared(left, right item, name string) int {
	a, hasA := left[name]
	b, hasB := right[name]
	if order := cmp.Compare(rank(a, hasA), rank(b, hasB)); order != 0 {
		return order
	}
	switch value := a.(type) {
	case bool:
		return cmp.Compare(fmt.Sprint(value), fmt.Sprint(b))
	case float64:
		return cmp.Compare(value, b.(float64))
	case string:
		return cmp.Compare(value, b.(string))
	}
	return 0
}

type sortKey struct {
	name       string
	descending bool
}

func paging() {
	withDatabase("paging", func(database *azcosmos.DatabaseClient) {
		properties := hashed("paging")
		composite := func(first, second azcosmos.CompositeIndexOrder) []azcosmos.CompositeIndex {
			return []azcosmos.CompositeIndex{{Path: "/tied", Order: first}, {Path: "/other", Order: second}}
		}
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent, IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			CompositeIndexes: [][]azcosmos.CompositeIndex{composite("ascending", "ascending"), composite("ascending", "descending")},
		}
		container := newContainer(database, properties, 30000)
		for n := range tiedItems {
			value := item{"id": fmt.Sprintf("p%03d", n), "pk": fmt.Sprintf("k%d", n%9), "tied": n % 3, "other": n % 2, "same": "x"}
			if mixedValue, isThere := mixed(n); isThere {
				value["mixed"] = mixedValue
			}
			create(container, value)
		}
		for _, keys := range [][]sortKey{
			{}, {{"same", false}}, {{"same", true}}, {{"tied", false}}, {{"tied", true}}, {{"mixed", false}}, {{"mixed", true}},
			{{"tied", false}, {"other", false}}, {{"tied", true}, {"other", true}}, {{"tied", false}, {"other", true}}, {{"tied", true}, {"other", false}},
		} {
			pagesInOrder(database, container, keys)
		}
	})
}

func orderBy(keys []sortKey) string {
	text := ""
	for n, each := range keys {
		text += []string{" ORDER BY", ","}[min(n, 1)] + " c." + each.name + map[bool]string{false: " ASC", true: " DESC"}[each.descending]
	}
	return text
}

func pagesInOrder(database *azcosmos.DatabaseClient, container *azcosmos.ContainerClient, keys []sortKey) {
	text := "SELECT * FROM c" + orderBy(keys)
	var whole []string
	for _, size := range []int32{0, -1, 1, 7, 40, 1000} {
		check(fmt.Sprintf("paging:%s in pages of %d", cmp.Or(orderBy(keys), " no order"), size), func() {
			found := query(container, text, everywhere, &azcosmos.QueryOptions{PageSizeHint: size})
			names := inOrder(found, keys)
			if whole == nil {
				whole = names
			}
			equal(names, whole)
		})
	}
	check(fmt.Sprintf("paging:%s, each page by a client that has seen nothing yet", cmp.Or(orderBy(keys), " no order")), func() {
		equal(inOrder(resumed(database, container, text, everywhere, 11), keys), whole)
	})
	check(fmt.Sprintf("paging:%s in one logical partition", cmp.Or(orderBy(keys), " no order")), func() {
		all := query(container, text, textKey("k4"), nil)
		that(len(all) == 13 || len(all) == 14, "%d items", len(all))
		equal(resumed(database, container, text, textKey("k4"), 2), all)
	})
}

// inOrder requires every item once and in the order asked for, and returns the ids.
func inOrder(found []any, keys []sortKey) []string {
	names := []string{}
	for n, each := range found {
		names = append(names, each.(item)["id"].(string))
		if n == 0 {
			continue
		}
		for _, by := range keys {
			order := compared(found[n-1].(item), each.(item), by.name)
			if by.descending {
				order = -order
			}
			that(order <= 0, "%v stands before %v", found[n-1], each)
			if order < 0 {
				break
			}
		}
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	that(len(names) == tiedItems && len(distinct) == tiedItems, "%d items, %d distinct", len(names), len(distinct))
	return names
}

func resumed(database *azcosmos.DatabaseClient, container *azcosmos.ContainerClient, text string, pk azcosmos.PartitionKey, size int32) []any {
	found := []any{}
	var token *string
	for turn := 0; ; turn++ {
		that(turn < 1000, "the pages do not end")
		options := &azcosmos.QueryOptions{PageSizeHint: size, ContinuationToken: token}
		page := must(again(database, container).NewQueryItemsPager(text, pk, options).NextPage(ctx))
		that(len(page.Items) <= int(size), "a page of %d items", len(page.Items))
		found = append(found, values(page.Items)...)
		if token = page.ContinuationToken; token == nil || *token == "" {
			return found
		}
	}
}
