package main

import (
	"encoding/base64"
	"fmt"
	"sort"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The client asks for no plan: whatever needs the results of several partitions together the server puts together.
func queries() {
	withDatabase("queries", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("queries"), 20000)
		for n := range 60 {
			create(container, item{"id": fmt.Sprintf("q%02d", n), "pk": fmt.Sprintf("k%d", n%6), "n": n, "kind": []string{"red", "green", "blue"}[n%3],
				"tags": []string{fmt.Sprintf("t%d", n%4), "all"}, "part": item{"half": float64(n) / 2}})
		}
		expected(container)
		parameters(container)
		queryAnswers(database, container)
		wrongQueries(container)
	})
}

func expected(container *azcosmos.ContainerClient) {
	range60 := []any{}
	for n := range 60 {
		range60 = append(range60, float64(n))
	}
	for _, each := range []struct {
		name, text string
		results    []any
	}{
		{"filter", "SELECT VALUE c.n FROM c WHERE c.n = 7", []any{7.0}},
		{"projection", "SELECT c.id, c.part.half FROM c WHERE c.n = 3", []any{item{"id": "q03", "half": 1.5}}},
		{"whole order", "SELECT VALUE c.n FROM c ORDER BY c.n", range60},
		{"TOP", "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", []any{59.0, 58.0, 57.0}},
		{"OFFSET LIMIT", "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", []any{10.0, 11.0, 12.0}},
		{"COUNT", "SELECT VALUE COUNT(1) FROM c", []any{60.0}},
		{"SUM", "SELECT VALUE SUM(c.n) FROM c", []any{1770.0}},
		{"AVG", "SELECT VALUE AVG(c.n) FROM c", []any{29.5}},
		{"MIN and MAX", "SELECT MIN(c.n) AS low, MAX(c.n) AS high FROM c", []any{item{"low": 0.0, "high": 59.0}}},
		{"DISTINCT in order", "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind", []any{"blue", "green", "red"}},
		{"JOIN", "SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 5", []any{"t1", "all"}},
		{"ARRAY_CONTAINS", "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 't2')", []any{15.0}},
		{"BETWEEN and IN", "SELECT VALUE c.n FROM c WHERE (c.n BETWEEN 10 AND 20) AND c.kind IN ('red') ORDER BY c.n", []any{12.0, 15.0, 18.0}},
		{"EXISTS", "SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't0')", []any{15.0}},
		{"functions of text", "SELECT VALUE UPPER(CONCAT(c.id, '-x')) FROM c WHERE STARTSWITH(c.id, 'q00')", []any{"Q00-X"}},
		{"LIKE", "SELECT VALUE COUNT(1) FROM c WHERE c.id LIKE 'q_5'", []any{6.0}},
		{"undefined", "SELECT VALUE COUNT(1) FROM c WHERE NOT IS_DEFINED(c.absent)", []any{60.0}},
		{"nothing", "SELECT * FROM c WHERE c.n > 1000", []any{}},
		{"no FROM", "SELECT VALUE 1 + 1", []any{2.0}},
	} {
		check("queries: "+each.name, func() { equal(query(container, each.text, everywhere, nil), each.results) })
	}
	check("queries: GROUP BY", func() {
		found := query(container, "SELECT c.kind, COUNT(1) AS n, SUM(c.n) AS total FROM c GROUP BY c.kind", everywhere, nil)
		sort.Slice(found, func(i, j int) bool { return found[i].(item)["kind"].(string) < found[j].(item)["kind"].(string) })
		equal(found, []any{item{"kind": "blue", "n": 20.0, "total": 610.0}, item{"kind": "green", "n": 20.0, "total": 590.0}, item{"kind": "red", "n": 20.0, "total": 570.0}})
	})
}

func parameters(container *azcosmos.ContainerClient) {
	check("queries: parameters of every type", func() {
		options := &azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{
			{Name: "@text", Value: "red"}, {Name: "@number", Value: 30.5}, {Name: "@list", Value: []any{1, 2}}, {Name: "@object", Value: item{"a": nil}}, {Name: "@yes", Value: true}, {Name: "@nothing", Value: nil}}}
		found := query(container, "SELECT VALUE [@list, @object, @yes, @nothing, c.n] FROM c WHERE c.kind = @text AND c.n > @number AND c.n < 34", everywhere, options)
		equal(found, []any{[]any{[]any{1.0, 2.0}, item{"a": nil}, true, nil, 33.0}})
	})
	check("queries: one logical partition, by its key and by a filter", func() {
		equal(len(query(container, "SELECT * FROM c", textKey("k1"), nil)), 10)
		equal(len(query(container, "SELECT * FROM c WHERE c.pk = 'k1'", everywhere, nil)), 10)
		equal(query(container, "SELECT VALUE COUNT(1) FROM c", textKey("k1"), nil), []any{10.0})
	})
}

func queryAnswers(database *azcosmos.DatabaseClient, container *azcosmos.ContainerClient) {
	check("queries: pages have a charge, an activity and metrics", func() {
		page := pages(container.NewQueryItemsPager("SELECT * FROM c WHERE c.n < 5", everywhere, nil))[0]
		that(page.RequestCharge > 0 && page.ActivityID != "", "no charge or activity")
		that(page.QueryMetrics != nil && strings.Contains(*page.QueryMetrics, "totalExecutionTimeInMs"), "no metrics")
	})
	check("queries: index metrics come when they are asked for", func() {
		page := pages(container.NewQueryItemsPager("SELECT * FROM c WHERE c.n < 5", everywhere, &azcosmos.QueryOptions{PopulateIndexMetrics: true}))[0]
		that(page.IndexMetrics != nil, "no index metrics")
		told := string(must(base64.StdEncoding.DecodeString(*page.IndexMetrics)))
		that(strings.Contains(told, "UtilizedSingleIndexes"), "%s", told)
		page = pages(container.NewQueryItemsPager("SELECT * FROM c WHERE c.n < 5", everywhere, nil))[0]
		that(page.IndexMetrics == nil || *page.IndexMetrics == "", "index metrics that nobody asked for")
	})
	check("queries: the options are taken", func() {
		options := &azcosmos.QueryOptions{EnableScanInQuery: true, PageSizeHint: -1, ResponseContinuationTokenLimitInKB: 1, PriorityLevel: pointer(azcosmos.PriorityLevelHigh),
			ConsistencyLevel: azcosmos.ConsistencyLevelEventual.ToPtr(), ThroughputBucket: pointer(int32(2))}
		equal(len(query(container, "SELECT * FROM c", everywhere, options)), 60)
	})
	check("queries: a session token of another client is obeyed", func() {
		token := must(again(database, container).UpsertItem(ctx, textKey("k0"), encode(item{"id": "q00", "pk": "k0", "n": 0, "kind": "red", "tags": []string{"t0", "all"}}), nil)).SessionToken
		equal(len(query(container, "SELECT * FROM c", textKey("k0"), &azcosmos.QueryOptions{SessionToken: token})), 10)
	})
	check("queries: the key of no item gives no item", func() {
		equal(len(query(container, "SELECT * FROM c", textKey("absent"), nil)), 0)
	})
	check("queries: a query over all partitions that is not allowed to is refused", func() {
		pager := container.NewQueryItemsPager("SELECT * FROM c", everywhere, &azcosmos.QueryOptions{EnableCrossPartitionQuery: pointer(false)})
		response, err := pager.NextPage(ctx)
		refused(400, response, err)
	})
}

func wrongQueries(container *azcosmos.ContainerClient) {
	for name, text := range map[string]string{"of wrong syntax": "SELEC * FROM c", "with an unknown function": "SELECT VALUE NOPE(1) FROM c", "with an unknown alias": "SELECT VALUE d.x FROM c"} {
		check("queries: one "+name+" is refused with the code and the place", func() {
			response, err := container.NewQueryItemsPager(text, everywhere, nil).NextPage(ctx)
			that(strings.Contains(refused(400, response, err).Error(), "SC"), "no code: %v", err)
		})
	}
	check("queries: a continuation of another query is refused", func() {
		page := must(container.NewQueryItemsPager("SELECT * FROM c", everywhere, &azcosmos.QueryOptions{PageSizeHint: 5}).NextPage(ctx))
		options := &azcosmos.QueryOptions{ContinuationToken: pointer("no token")}
		response, err := container.NewQueryItemsPager("SELECT * FROM c", everywhere, options).NextPage(ctx)
		refused(400, response, err)
		that(page.ContinuationToken != nil, "no continuation")
	})
}
