package main

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func catalog() {
	databases()
	withDatabase("catalog", func(database *azcosmos.DatabaseClient) {
		containers(database)
		policies(database)
		throughput(database)
	})
	sharedThroughput()
}

func databases() {
	client := newClient(nil)
	withDatabase("databases", func(database *azcosmos.DatabaseClient) {
		check("databases: read tells id, etag, rid and the time of the last change", func() {
			read := must(database.Read(ctx, nil))
			equal(read.DatabaseProperties.ID, database.ID())
			that(*read.DatabaseProperties.ETag != "" && read.DatabaseProperties.ResourceID != "", "%v", read.DatabaseProperties)
			that(read.DatabaseProperties.LastModified.Year() > 2000, "%v", read.DatabaseProperties.LastModified)
			that(read.RequestCharge > 0 && read.ActivityID != "", "no charge or activity")
		})
		check("databases: a second one of the name is a conflict", func() {
			response, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: database.ID()}, nil)
			refused(409, response, err)
		})
		check("databases: one that is not there is not found", func() {
			response, err := must(client.NewDatabase("absent")).Read(ctx, nil)
			refused(404, response, err)
		})
		check("databases: are queried, with a parameter and without", func() {
			all := 0
			for _, page := range pages(client.NewQueryDatabasesPager("SELECT * FROM c", nil)) {
				all += len(page.Databases)
			}
			that(all >= 1, "no database")
			options := &azcosmos.QueryDatabasesOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: database.ID()}}}
			found := pages(client.NewQueryDatabasesPager("SELECT * FROM c WHERE c.id = @id", options))
			equal(len(found), 1)
			equal(found[0].Databases[0].ID, database.ID())
		})
		check("databases: If-None-Match with the current etag is 304", func() {
			etag := must(database.Read(ctx, nil)).ETag
			response, err := database.Read(ctx, &azcosmos.ReadDatabaseOptions{IfNoneMatchEtag: &etag})
			if err != nil {
				refused(304, response, err)
			} else {
				equal(response.RawResponse.StatusCode, 304)
			}
		})
		check("databases: a delete with another etag is refused", func() {
			response, err := database.Delete(ctx, &azcosmos.DeleteDatabaseOptions{IfMatchEtag: pointer(azcore.ETag("\"other\""))})
			refused(412, response, err)
			equal(must(database.Read(ctx, nil)).DatabaseProperties.ID, database.ID())
		})
	})
}

func containers(database *azcosmos.DatabaseClient) {
	check("containers: create, read, replace, query, delete", func() {
		created := must(database.CreateContainer(ctx, hashed("c"), nil))
		equal(created.RawResponse.StatusCode, 201)
		equal(created.ContainerProperties.PartitionKeyDefinition.Paths, []string{"/pk"})
		container := must(database.NewContainer("c"))
		properties := *must(container.Read(ctx, nil)).ContainerProperties
		equal(properties.ID, "c")
		properties.DefaultTimeToLive = pointer(int32(3600))
		replaced := must(container.Replace(ctx, properties, nil))
		equal(*replaced.ContainerProperties.DefaultTimeToLive, int32(3600))
		equal(*must(container.Read(ctx, nil)).ContainerProperties.DefaultTimeToLive, int32(3600))
		found := pages(database.NewQueryContainersPager("SELECT * FROM c WHERE c.id = 'c'", nil))
		equal(found[0].Containers[0].ID, "c")
		equal(must(container.Delete(ctx, nil)).RawResponse.StatusCode, 204)
		response, err := container.Read(ctx, nil)
		refused(404, response, err)
	})
	check("containers: a second one of the name is a conflict", func() {
		must(database.CreateContainer(ctx, hashed("twice"), nil))
		response, err := database.CreateContainer(ctx, hashed("twice"), nil)
		refused(409, response, err)
	})
	check("containers: the partition key cannot be replaced", func() {
		container := must(database.NewContainer("twice"))
		properties := *must(container.Read(ctx, nil)).ContainerProperties
		properties.PartitionKeyDefinition.Paths = []string{"/other"}
		response, err := container.Replace(ctx, properties, nil)
		refused(400, response, err)
	})
	check("containers: quota and usage come when they are asked for", func() {
		container := must(database.NewContainer("twice"))
		header := must(container.Read(ctx, &azcosmos.ReadContainerOptions{PopulateQuotaInfo: true})).RawResponse.Header
		that(header.Get("x-ms-resource-quota") != "" && header.Get("x-ms-resource-usage") != "", "%v", header)
	})
	check("containers: without a version the partition key has the first one", func() {
		properties := azcosmos.ContainerProperties{ID: "v1", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}
		created := must(database.CreateContainer(ctx, properties, nil))
		that(created.ContainerProperties.PartitionKeyDefinition.Version <= 1, "%v", created.ContainerProperties.PartitionKeyDefinition)
		container := must(database.NewContainer("v1"))
		create(container, item{"id": "1", "pk": "a"})
		equal(len(query(container, "SELECT * FROM c", textKey("a"), nil)), 1)
	})
	check("containers: a partition key of three levels", func() {
		properties := azcosmos.ContainerProperties{ID: "levels", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Paths: []string{"/a", "/b", "/c"}, Kind: azcosmos.PartitionKeyKindMultiHash, Version: 2}}
		must(database.CreateContainer(ctx, properties, nil))
		container := must(database.NewContainer("levels"))
		whole := textKey("x").AppendNumber(1).AppendBool(true)
		must(container.CreateItem(ctx, whole, encode(item{"id": "1", "a": "x", "b": 1, "c": true}), nil))
		other := textKey("x").AppendNumber(1).AppendNull()
		must(container.CreateItem(ctx, other, encode(item{"id": "1", "a": "x", "b": 1, "c": nil}), nil))
		equal(decode(must(container.ReadItem(ctx, whole, "1", nil)).Value)["c"], true)
		equal(len(query(container, "SELECT * FROM c", whole, nil)), 1)
		equal(len(query(container, "SELECT * FROM c WHERE c.a = 'x'", everywhere, nil)), 2)
		definition := must(container.Read(ctx, nil)).ContainerProperties.PartitionKeyDefinition
		equal(definition.Kind, azcosmos.PartitionKeyKindMultiHash)
	})
}

func policies(database *azcosmos.DatabaseClient) {
	check("policies: indexes of every kind come back as they were given", func() {
		properties := hashed("indexed")
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic:     true,
			IndexingMode:  azcosmos.IndexingModeConsistent,
			IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/hidden/?"}},
			SpatialIndexes: []azcosmos.SpatialIndex{{Path: "/place/*", SpatialTypes: []azcosmos.SpatialType{
				azcosmos.SpatialTypePoint, azcosmos.SpatialTypeLineString, azcosmos.SpatialTypePolygon, azcosmos.SpatialTypeMultiPolygon}}},
			CompositeIndexes: [][]azcosmos.CompositeIndex{{
				{Path: "/a", Order: azcosmos.CompositeIndexAscending}, {Path: "/b", Order: azcosmos.CompositeIndexDescending}}},
		}
		must(database.CreateContainer(ctx, properties, nil))
		policy := must(must(database.NewContainer("indexed")).Read(ctx, nil)).ContainerProperties.IndexingPolicy
		equal(policy.CompositeIndexes, properties.IndexingPolicy.CompositeIndexes)
		equal(len(policy.SpatialIndexes[0].SpatialTypes), 4)
		equal(policy.ExcludedPaths[0].Path, "/hidden/?")
	})
	check("policies: unique keys are kept and obeyed", func() {
		properties := hashed("unique")
		properties.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/mail"}}}}
		must(database.CreateContainer(ctx, properties, nil))
		container := must(database.NewContainer("unique"))
		create(container, item{"id": "1", "pk": "a", "mail": "m"})
		response, err := container.CreateItem(ctx, textKey("a"), encode(item{"id": "2", "pk": "a", "mail": "m"}), nil)
		refused(409, response, err)
		create(container, item{"id": "2", "pk": "b", "mail": "m"})
		equal(must(container.Read(ctx, nil)).ContainerProperties.UniqueKeyPolicy.UniqueKeys[0].Paths, []string{"/mail"})
	})
	check("policies: conflict resolution by the last writer", func() {
		properties := hashed("conflicts")
		properties.ConflictResolutionPolicy = &azcosmos.ConflictResolutionPolicy{Mode: azcosmos.ConflictResolutionModeLastWriteWins, ResolutionPath: "/rank"}
		created := must(database.CreateContainer(ctx, properties, nil))
		equal(created.ContainerProperties.ConflictResolutionPolicy.ResolutionPath, "/rank")
	})
	check("policies: vectors and full text come back, and are searched", func() {
		properties := hashed("search")
		properties.VectorEmbeddingPolicy = &azcosmos.VectorEmbeddingPolicy{VectorEmbeddings: []azcosmos.VectorEmbedding{{
			Path: "/vector", DataType: azcosmos.VectorDataTypeFloat32, DistanceFunction: azcosmos.VectorDistanceFunctionCosine, Dimensions: 2}}}
		properties.FullTextPolicy = &azcosmos.FullTextPolicy{DefaultLanguage: "en-US", FullTextPaths: []azcosmos.FullTextPath{{Path: "/text", Language: "en-US"}}}
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent, IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			VectorIndexes:   []azcosmos.VectorIndex{{Path: "/vector", Type: azcosmos.VectorIndexTypeFlat}},
			FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
		}
		must(database.CreateContainer(ctx, properties, nil))
		container := must(database.NewContainer("search"))
		read := must(container.Read(ctx, nil)).ContainerProperties
		equal(read.VectorEmbeddingPolicy, properties.VectorEmbeddingPolicy)
		equal(read.FullTextPolicy, properties.FullTextPolicy)
		for n, text := range []string{"a red bicycle", "a blue boat", "red boats and bicycles"} {
			create(container, item{"id": fmt.Sprint(n), "pk": "a", "text": text, "vector": []float64{float64(n), 1}})
		}
		equal(query(container, "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'bicycle') ORDER BY c.id", textKey("a"), nil), []any{"0", "2"})
		nearest := "SELECT TOP 1 VALUE c.id FROM c ORDER BY VectorDistance(c.vector, [2.0, 1.0])"
		equal(query(container, nearest, textKey("a"), nil), []any{"2"})
	})
}

func throughput(database *azcosmos.DatabaseClient) {
	check("throughput: manual is read and replaced", func() {
		container := newContainer(database, hashed("manual"), 400)
		read := must(container.ReadThroughput(ctx, nil))
		manual, isManual := read.ThroughputProperties.ManualThroughput()
		equal([]any{manual, isManual}, []any{int32(400), true})
		that(read.MinThroughput != nil && *read.MinThroughput == 400, "no smallest throughput")
		_, isAutoscale := read.ThroughputProperties.AutoscaleMaxThroughput()
		equal(isAutoscale, false)
		must(container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(500), nil))
		changed, _ := must(container.ReadThroughput(ctx, nil)).ThroughputProperties.ManualThroughput()
		equal(changed, int32(500))
	})
	check("throughput: one that is no multiple of 100 or too small is refused", func() {
		container := must(database.NewContainer("manual"))
		for _, wrong := range []int32{450, 100} {
			response, err := container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(wrong), nil)
			refused(400, response, err)
		}
	})
	check("throughput: the etag guards it", func() {
		container := must(database.NewContainer("manual"))
		response, err := container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(600),
			&azcosmos.ThroughputOptions{IfMatchEtag: pointer(azcore.ETag("\"other\""))})
		refused(412, response, err)
		etag := must(container.ReadThroughput(ctx, nil)).ThroughputProperties.ETag
		must(container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(600), &azcosmos.ThroughputOptions{IfMatchEtag: etag}))
	})
	check("throughput: autoscale is read, replaced, and becomes manual", func() {
		provisioned := azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(4000, 10)
		must(database.CreateContainer(ctx, hashed("autoscale"), &azcosmos.CreateContainerOptions{ThroughputProperties: &provisioned}))
		container := must(database.NewContainer("autoscale"))
		read := must(container.ReadThroughput(ctx, nil)).ThroughputProperties
		most, isAutoscale := read.AutoscaleMaxThroughput()
		equal([]any{most, isAutoscale}, []any{int32(4000), true})
		increment, _ := read.AutoscaleIncrement()
		equal(increment, int32(10))
		must(container.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(5000), nil))
		most, _ = must(container.ReadThroughput(ctx, nil)).ThroughputProperties.AutoscaleMaxThroughput()
		equal(most, int32(5000))
	})
}

func sharedThroughput() {
	client := newClient(nil)
	check("throughput: of a database, shared by its containers", func() {
		provisioned := azcosmos.NewManualThroughputProperties(400)
		must(client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shared"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &provisioned}))
		database := must(client.NewDatabase("shared"))
		defer database.Delete(ctx, nil)
		must(database.CreateContainer(ctx, hashed("one"), nil))
		must(database.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(600), nil))
		manual, _ := must(database.ReadThroughput(ctx, nil)).ThroughputProperties.ManualThroughput()
		equal(manual, int32(600))
		response, err := must(database.NewContainer("one")).ReadThroughput(ctx, nil)
		that(err != nil, "the container has a throughput of its own: %v", response)
	})
}
