package main

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func statuses(response azcosmos.TransactionalBatchResponse) []int32 {
	found := []int32{}
	for _, result := range response.OperationResults {
		found = append(found, result.StatusCode)
	}
	return found
}

func batch() {
	withDatabase("batch", func(database *azcosmos.DatabaseClient) {
		container := newContainer(database, hashed("batch"), 400)
		a := textKey("a")
		execute := func(options *azcosmos.TransactionalBatchOptions, build func(*azcosmos.TransactionalBatch)) azcosmos.TransactionalBatchResponse {
			operations := container.NewTransactionalBatch(a)
			build(&operations)
			return must(container.ExecuteTransactionalBatch(ctx, operations, options))
		}
		one := func(id string, n int) []byte { return encode(item{"id": id, "pk": "a", "n": n}) }
		check("batch: every kind of operation, in order", func() {
			var increment azcosmos.PatchOperations
			increment.AppendIncrement("/n", 5)
			response := execute(&azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true}, func(b *azcosmos.TransactionalBatch) {
				b.CreateItem(one("1", 1), nil)
				b.UpsertItem(one("2", 2), nil)
				b.ReplaceItem("1", one("1", 3), nil)
				b.PatchItem("1", increment, nil)
				b.ReadItem("1", nil)
				b.DeleteItem("2", nil)
			})
			that(response.Success, "%v", statuses(response))
			equal(statuses(response), []int32{201, 201, 200, 200, 200, 204})
			equal(decode(response.OperationResults[4].ResourceBody)["n"], 8.0)
			that(response.OperationResults[0].ETag != "" && response.OperationResults[0].RequestCharge > 0, "no etag or charge")
			that(response.SessionToken != "" && response.RequestCharge > 0, "no session or charge")
		})
		check("batch: answers writes without a body unless it is asked for, or an item is read", func() {
			silent := execute(nil, func(b *azcosmos.TransactionalBatch) { b.UpsertItem(one("3", 3), nil) })
			equal(len(silent.OperationResults[0].ResourceBody), 0)
			that(silent.OperationResults[0].ETag != "", "no etag")
			told := execute(nil, func(b *azcosmos.TransactionalBatch) {
				b.UpsertItem(one("3", 4), nil)
				b.ReadItem("3", nil)
			})
			equal(decode(told.OperationResults[1].ResourceBody)["n"], 4.0)
		})
		check("batch: one operation that fails undoes all, and is named", func() {
			response := execute(nil, func(b *azcosmos.TransactionalBatch) {
				b.CreateItem(one("4", 4), nil)
				b.CreateItem(one("1", 1), nil)
				b.DeleteItem("3", nil)
			})
			equal(response.Success, false)
			equal(statuses(response), []int32{424, 409, 424})
			that(response.RequestCharge > 0, "a failed batch has no charge")
			missing, err := container.ReadItem(ctx, a, "4", nil)
			refused(404, missing, err)
			must(container.ReadItem(ctx, a, "3", nil))
		})
		check("batch: etags of operations", func() {
			etag := must(container.ReadItem(ctx, a, "1", nil)).ETag
			stale := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: pointer(azcore.ETag("\"other\""))}
			current := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag}
			equal(statuses(execute(nil, func(b *azcosmos.TransactionalBatch) { b.ReplaceItem("1", one("1", 1), stale) })), []int32{412})
			equal(statuses(execute(nil, func(b *azcosmos.TransactionalBatch) { b.ReplaceItem("1", one("1", 1), current) })), []int32{200})
		})
		check("batch: an item that is not there fails the batch with 404", func() {
			equal(statuses(execute(nil, func(b *azcosmos.TransactionalBatch) {
				b.ReadItem("absent", nil)
				b.UpsertItem(one("5", 5), nil)
			})), []int32{404, 424})
		})
		check("batch: a hundred operations pass, a hundred and one are refused", func() {
			build := func(count int) azcosmos.TransactionalBatch {
				operations := container.NewTransactionalBatch(a)
				for n := range count {
					operations.UpsertItem(one(fmt.Sprintf("many%d", n), n), nil)
				}
				return operations
			}
			equal(len(must(container.ExecuteTransactionalBatch(ctx, build(100), nil)).OperationResults), 100)
			response, err := container.ExecuteTransactionalBatch(ctx, build(101), nil)
			refused(400, response, err)
		})
		check("batch: an item of another logical partition is refused", func() {
			operations := container.NewTransactionalBatch(a)
			operations.CreateItem(encode(item{"id": "6", "pk": "b"}), nil)
			response, err := container.ExecuteTransactionalBatch(ctx, operations, nil)
			if err != nil {
				refused(400, response, err)
			} else {
				equal(statuses(response), []int32{400})
			}
		})
	})
}
