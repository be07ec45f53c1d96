package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	loadTimeLeast  = 3 * time.Second
	loadTimeMost   = 120 * time.Second
	timesLeast     = 5
	loadKeys       = 24
	fixedItems     = 100
	partitionsMost = 6
)

// A signed call of the admin API, on a container.
func admin(method, database, container, name string, body any) (int, item) {
	path := fmt.Sprintf("_pleiad/v1/dbs/%s/colls/%s", database, container)
	date := time.Now().UTC().Format(http.TimeFormat)
	text := fmt.Sprintf("%s\n%s\n%s\n%s\n\n", strings.ToLower(method), name, path, strings.ToLower(date))
	proof := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString(key)))
	proof.Write([]byte(text))
	signature := base64.StdEncoding.EncodeToString(proof.Sum(nil))
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(encode(body))
	}
	request := must(http.NewRequest(method, endpoint+path+"/"+name, sent))
	request.Header.Set("authorization", url.QueryEscape("type=master&ver=1.0&sig="+signature))
	request.Header.Set("x-ms-date", date)
	answer := must(http.DefaultClient.Do(request))
	defer answer.Body.Close()
	var told item
	that(json.NewDecoder(answer.Body).Decode(&told) == nil, "the admin API answers no JSON")
	return answer.StatusCode, told
}

type load struct {
	sync.Mutex
	database, container string
	client              *azcosmos.ContainerClient
	done                map[string]int
	items               map[string]float64
	seen                map[string]float64
	token               *string
}

func (l *load) partitions() item {
	status, told := admin("GET", l.database, l.container, "partitions", nil)
	that(status == 200, "%d %v", status, told)
	return told
}

func keyOf(n int) string { return fmt.Sprintf("k%d", n%loadKeys) }

func (l *load) remember(name string, n float64) {
	l.Lock()
	defer l.Unlock()
	l.items[name] = n
}

// change splits a partition, or merges two neighbours; what another change has overtaken is let go.
func (l *load) change(int) {
	names := []any{}
	for _, each := range l.partitions()["partitions"].([]any) {
		names = append(names, each.(item)["id"])
	}
	name, body := "split", item{"partition": names[rand.IntN(len(names))]}
	if len(names) >= partitionsMost || len(names) > 1 && rand.IntN(10) < 4 {
		first := rand.IntN(len(names) - 1)
		name, body = "merge", item{"partitions": names[first : first+2]}
	}
	status, told := admin("POST", l.database, l.container, name, body)
	that(slices.Contains([]int{201, 202, 400, 404, 410, 412}, status), "%d %v", status, told)
	time.Sleep(80 * time.Millisecond)
}

func (l *load) write(n int) {
	id, pk := fmt.Sprintf("w%d", n%50), keyOf(n)
	must(l.client.UpsertItem(ctx, textKey(pk), encode(item{"id": id, "pk": pk, "n": n}), nil))
	equal(decode(must(l.client.ReadItem(ctx, textKey(pk), id, nil)).Value)["n"], float64(n))
	l.remember(pk+"/"+id, float64(n))
	var count azcosmos.PatchOperations
	count.AppendIncrement("/count", 1)
	must(l.client.PatchItem(ctx, textKey("k0"), "counter", count, nil))
	if n%4 == 0 {
		must(l.client.DeleteItem(ctx, textKey(pk), id, nil))
		l.Lock()
		delete(l.items, pk+"/"+id)
		l.Unlock()
	}
}

func (l *load) batch(n int) {
	pk := keyOf(n)
	pair := l.client.NewTransactionalBatch(textKey(pk))
	for _, id := range []string{"pair-a", "pair-b"} {
		pair.UpsertItem(encode(item{"id": id, "pk": pk, "n": n}), nil)
	}
	that(must(l.client.ExecuteTransactionalBatch(ctx, pair, nil)).Success, "a batch failed")
	for _, id := range []string{"pair-a", "pair-b"} {
		l.remember(pk+"/"+id, float64(n))
	}
}

// query finds the items that nobody changes once each, in order and page by page.
func (l *load) query(int) {
	found := query(l.client, "SELECT VALUE c.n FROM c WHERE c.fixed ORDER BY c.n", everywhere, &azcosmos.QueryOptions{PageSizeHint: 15})
	for n := range fixedItems {
		that(n < len(found) && found[n] == float64(n), "%v", found)
	}
	equal(len(found), fixedItems)
	equal(query(l.client, "SELECT VALUE COUNT(1) FROM c WHERE c.fixed", everywhere, nil), []any{float64(fixedItems)})
}

func (l *load) readMany(int) {
	identities := []azcosmos.ItemIdentity{}
	for n := range fixedItems {
		identities = append(identities, azcosmos.ItemIdentity{ID: fmt.Sprintf("f%d", n), PartitionKey: textKey(keyOf(n))})
	}
	equal(len(must(l.client.ReadManyItems(ctx, identities, nil)).Items), fixedItems)
}

func (l *load) follow(int) {
	options := azcosmos.ChangeFeedOptions{MaxItemCount: 20, Continuation: l.token, FeedRange: whole}
	page := must(l.client.ReadChangeFeed(ctx, &options))
	l.see(values(page.Items))
	if page.ContinuationToken != "" {
		l.token = &page.ContinuationToken
	}
}

func (l *load) see(changes []any) {
	for _, each := range changes {
		if n, isThere := each.(item)["n"].(float64); isThere {
			l.seen[each.(item)["pk"].(string)+"/"+each.(item)["id"].(string)] = n
		}
	}
}

func splits() {
	withDatabase("splits", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("splits"), 20000)
		for n := range fixedItems {
			create(container, item{"id": fmt.Sprintf("f%d", n), "pk": keyOf(n), "fixed": true, "n": n})
		}
		create(container, item{"id": "counter", "pk": "k0", "count": 0})
		l := &load{database: database.ID(), container: container.ID(), client: container, done: map[string]int{}, items: map[string]float64{}, seen: map[string]float64{}}
		activities := map[string]func(int){
			"the partitions change": l.change, "writes, reads, patches and deletes": l.write, "batches": l.batch,
			"queries over all partitions": l.query, "read many": l.readMany, "the change feed": l.follow,
		}
		errors := l.runAll(activities)
		for name := range activities {
			check("splits: "+name, func() {
				if errors[name] != nil {
					panic(errors[name])
				}
				that(l.done[name] >= timesLeast, "only %d times", l.done[name])
			})
		}
		afterwards(l)
	})
}

// runAll does everything at once until each was done some times, and returns the first error of each activity.
func (l *load) runAll(activities map[string]func(int)) map[string]error {
	var working sync.WaitGroup
	errors := map[string]error{}
	begin := time.Now()
	isOver := func() bool {
		l.Lock()
		defer l.Unlock()
		often := true
		for name := range activities {
			often = often && (l.done[name] >= timesLeast || errors[name] != nil)
		}
		return time.Since(begin) > loadTimeMost || often && time.Since(begin) > loadTimeLeast
	}
	for name, act := range activities {
		working.Go(func() {
			for n := 0; !isOver(); n++ {
				err := caught(func() { act(n) })
				l.Lock()
				l.done[name]++
				if err != nil {
					errors[name] = err
				}
				l.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	working.Wait()
	return errors
}

func afterwards(l *load) {
	for turn := 0; l.partitions()["settled"] != true; turn++ {
		that(turn < 5000, "a change of the partitions does not end")
		time.Sleep(20 * time.Millisecond)
	}
	check("splits: afterwards every acknowledged write is there once", func() {
		found := query(l.client, "SELECT * FROM c", everywhere, nil)
		equal(len(found), fixedItems+1+len(l.items))
		for _, each := range found {
			name := each.(item)["pk"].(string) + "/" + each.(item)["id"].(string)
			if n, isThere := l.items[name]; isThere {
				equal(each.(item)["n"], n)
			}
		}
		count := decode(must(l.client.ReadItem(ctx, textKey("k0"), "counter", nil)).Value)["count"]
		equal(count, float64(l.done["writes, reads, patches and deletes"]))
	})
	check("splits: afterwards the change feed has told the last version of everything", func() {
		options := azcosmos.ChangeFeedOptions{Continuation: l.token, FeedRange: whole}
		changes, _ := follow(l.client, options)
		l.see(changes)
		for name, n := range l.items {
			that(l.seen[name] == n, "%s: %v instead of %v", name, l.seen[name], n)
		}
	})
}
