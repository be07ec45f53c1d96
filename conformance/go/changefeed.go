package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var whole = &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

// follow reads pages from the token on until nothing is new, and returns the items and the next token.
func follow(container *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions) ([]any, *string) {
	found := []any{}
	quiet := 0
	for turn := 0; quiet < 8; turn++ {
		that(turn < 2000, "the change feed does not end")
		page := must(container.ReadChangeFeed(ctx, &options))
		found = append(found, values(page.Items)...)
		equal(page.Count, len(page.Items))
		if quiet++; page.Count > 0 {
			quiet = 0
		}
		if page.ContinuationToken != "" {
			options.Continuation = pointer(page.ContinuationToken)
		}
	}
	return found, options.Continuation
}

func changeFeed() {
	withDatabase("changefeed", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("feed"), 30000)
		for n := range 50 {
			create(container, item{"id": fmt.Sprintf("f%d", n), "pk": fmt.Sprintf("k%d", n%10), "n": n})
		}
		ranges := must(container.ReadFeedRanges(ctx, nil))
		check("change feed: the feed ranges cover the container without a gap", func() {
			that(len(ranges) >= 3, "%d ranges", len(ranges))
			equal([]string{ranges[0].MinInclusive, ranges[len(ranges)-1].MaxExclusive}, []string{"", "FF"})
			for n := 1; n < len(ranges); n++ {
				equal(ranges[n].MinInclusive, ranges[n-1].MaxExclusive)
			}
		})
		for _, size := range []int32{0, 1, 7, 100} {
			check(fmt.Sprintf("change feed: of the whole container in pages of %d", size), func() {
				distinct := map[any]bool{}
				found, _ := follow(container, azcosmos.ChangeFeedOptions{MaxItemCount: size, FeedRange: whole})
				for _, each := range found {
					distinct[each.(item)["n"]] = true
				}
				equal([]int{len(found), len(distinct)}, []int{50, 50})
			})
		}
		check("change feed: each feed range tells its own, together all", func() {
			all := 0
			for _, each := range ranges {
				found, _ := follow(container, azcosmos.ChangeFeedOptions{FeedRange: &each})
				all += len(found)
			}
			equal(all, 50)
		})
		check("change feed: of one logical partition, in the order of the changes", func() {
			pk := textKey("k3")
			var home *azcosmos.FeedRange
			for _, each := range ranges {
				inRange, _ := follow(container, azcosmos.ChangeFeedOptions{FeedRange: &each})
				if slices.ContainsFunc(inRange, func(change any) bool { return change.(item)["pk"] == "k3" }) {
					home = &each
				}
			}
			found, _ := follow(container, azcosmos.ChangeFeedOptions{PartitionKey: &pk, FeedRange: home})
			numbers := []any{}
			for _, each := range found {
				numbers = append(numbers, each.(item)["n"])
			}
			equal(numbers, []any{3.0, 13.0, 23.0, 33.0, 43.0})
		})
		check("change feed: goes on from its token with what is new, in a client that has seen nothing yet", func() {
			options := azcosmos.ChangeFeedOptions{FeedRange: whole}
			_, token := follow(container, options)
			must(container.UpsertItem(ctx, textKey("k3"), encode(item{"id": "f3", "pk": "k3", "n": 103}), nil))
			create(container, item{"id": "new", "pk": "new", "n": 200})
			must(container.DeleteItem(ctx, textKey("k4"), "f4", nil))
			options.Continuation = token
			found, _ := follow(again(database, container), options)
			distinct := map[any]bool{}
			for _, each := range found {
				distinct[each.(item)["n"]] = true
			}
			equal(distinct, map[any]bool{103.0: true, 200.0: true})
		})
		check("change feed: from a time in the future there is nothing", func() {
			later := time.Now().Add(time.Hour)
			found, _ := follow(container, azcosmos.ChangeFeedOptions{StartFrom: &later, FeedRange: &ranges[0]})
			equal(len(found), 0)
		})
		check("change feed: from a time in the past there is everything", func() {
			earlier := time.Now().Add(-time.Hour)
			found, _ := follow(container, azcosmos.ChangeFeedOptions{StartFrom: &earlier, FeedRange: whole})
			equal(len(found), 50)
		})
		check("change feed: pages have an etag and a charge", func() {
			page := must(container.ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{FeedRange: &ranges[0]}))
			that(page.ETag != "" && page.RequestCharge > 0 && page.ResourceID != "", "%v", page)
		})
	})
}
