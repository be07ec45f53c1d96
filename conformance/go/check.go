package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// An item as its JSON reads.
type item = map[string]any

var (
	ctx         = context.Background()
	endpoint    = os.Getenv("ACCOUNT_HOST")
	key         = os.Getenv("ACCOUNT_KEY")
	readOnlyKey = os.Getenv("ACCOUNT_READ_ONLY_KEY")
	counts      struct{ passed, failed int }
)

// One check is one line of output. A check that panics has failed; the rest of its section still runs.
func check(name string, action func()) {
	if err := caught(action); err != nil {
		counts.failed++
		fmt.Printf("FAIL  %s: %s\n", name, describe(err))
		return
	}
	counts.passed++
	fmt.Printf("ok    %s\n", name)
}

// What a section sets up for its checks may fail too; then none of the rest can be checked.
func setUp(name string, section func()) {
	if err := caught(section); err != nil {
		counts.failed++
		fmt.Printf("FAIL  %s: could not be set up: %s\n", name, describe(err))
	}
}

func caught(action func()) (failure error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case error:
			failure = reason
		default:
			failure = fmt.Errorf("%v", reason)
		}
	}()
	action()
	return nil
}

func describe(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return text[:min(len(text), 500)]
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func that(holds bool, text string, values ...any) {
	if !holds {
		panic(fmt.Errorf(text, values...))
	}
}

func equal(found, expected any) {
	that(reflect.DeepEqual(found, expected), "%v instead of %v", found, expected)
}

// refused requires that the service answered with this status, and returns its error.
func refused[T any](status int, _ T, err error) *azcore.ResponseError {
	that(err != nil, "expected a refusal with %d", status)
	var response *azcore.ResponseError
	that(errors.As(err, &response), "expected %d: %v", status, err)
	that(response.StatusCode == status, "expected %d: %v", status, err)
	return response
}

func encode(value any) []byte { return must(json.Marshal(value)) }

func decode(text []byte) item {
	var value item
	that(json.Unmarshal(text, &value) == nil, "no JSON object: %q", text)
	return value
}

func values(texts [][]byte) []any {
	found := []any{}
	for _, text := range texts {
		var value any
		that(json.Unmarshal(text, &value) == nil, "no JSON: %q", text)
		found = append(found, value)
	}
	return found
}

func pointer[T any](value T) *T { return &value }

func textKey(value string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(value) }

func newClient(options *azcosmos.ClientOptions) *azcosmos.Client {
	return clientWithKey(key, options)
}

func clientWithKey(secret string, options *azcosmos.ClientOptions) *azcosmos.Client {
	return must(azcosmos.NewClientWithKey(endpoint, must(azcosmos.NewKeyCredential(secret)), options))
}

// withDatabase runs the action with a database of its own, deleted afterwards.
func withDatabase(label string, action func(*azcosmos.DatabaseClient)) {
	client := newClient(nil)
	id := fmt.Sprintf("check-%s-%d-%d", label, time.Now().UnixNano(), rand.IntN(1e9))
	must(client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: id}, nil))
	database := must(client.NewDatabase(id))
	defer database.Delete(ctx, nil)
	action(database)
}

func hashed(id string) azcosmos.ContainerProperties {
	return azcosmos.ContainerProperties{
		ID:                     id,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}
}

func newContainer(database *azcosmos.DatabaseClient, properties azcosmos.ContainerProperties, throughput int32) *azcosmos.ContainerClient {
	provisioned := azcosmos.NewManualThroughputProperties(throughput)
	must(database.CreateContainer(ctx, properties, &azcosmos.CreateContainerOptions{ThroughputProperties: &provisioned}))
	return must(database.NewContainer(properties.ID))
}

func create(container *azcosmos.ContainerClient, value item) azcosmos.ItemResponse {
	return must(container.CreateItem(ctx, textKey(value["pk"].(string)), encode(value), nil))
}

// again returns a container of a client that has seen nothing yet.
func again(database *azcosmos.DatabaseClient, container *azcosmos.ContainerClient) *azcosmos.ContainerClient {
	return must(newClient(nil).NewContainer(database.ID(), container.ID()))
}

func pages[T any](pager *runtime.Pager[T]) []T {
	found := []T{}
	for pager.More() {
		found = append(found, must(pager.NextPage(ctx)))
		that(len(found) < 10000, "the pages do not end")
	}
	return found
}

// query runs the text in one logical partition, or in all with an empty key, and returns all results.
func query(container *azcosmos.ContainerClient, text string, pk azcosmos.PartitionKey, options *azcosmos.QueryOptions) []any {
	found := []any{}
	for _, page := range pages(container.NewQueryItemsPager(text, pk, options)) {
		found = append(found, values(page.Items)...)
	}
	return found
}

var everywhere = azcosmos.NewPartitionKey()
