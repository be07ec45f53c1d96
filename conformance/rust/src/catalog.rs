//! Databases, containers, their policies and their throughput.

use crate::check::*;
use azure_data_cosmos::clients::DatabaseClient;
use azure_data_cosmos::models::*;
use azure_data_cosmos::options::CreateContainerOptions;
use futures::TryStreamExt;
use serde_json::json;
use std::time::Duration;

pub async fn run() -> Outcome {
    let database = new_database("catalog").await?;
    databases(&database).await?;
    containers(&database).await;
    policies(&database).await;
    throughput(&database).await;
    database.delete(None).await?;
    Ok(())
}

async fn databases(database: &DatabaseClient) -> Outcome {
    let client = new_client().await?;
    let name = database.name().unwrap_or_default();
    check("databases: read tells id, etag and rid", async {
        let read = database.read(None).await?.into_model()?;
        equal(read.id.as_deref(), Some(name))?;
        that(read.system_properties.etag.is_some() && read.system_properties.resource_id.is_some(), "no etag or rid")
    })
    .await;
    check("databases: a second one of the name is a conflict", async {
        refused(409, client.create_database(name, None).await)?;
        Ok(())
    })
    .await;
    check("databases: one that is not there is not found", async {
        refused(404, client.database_client("absent").read(None).await)?;
        Ok(())
    })
    .await;
    check("databases: are queried", async {
        let text = format!("SELECT * FROM c WHERE c.id = '{name}'");
        let found: Vec<DatabaseProperties> = client.query_databases(text, None).await?.try_collect().await?;
        equal(found.len(), 1)
    })
    .await;
    Ok(())
}

async fn containers(database: &DatabaseClient) {
    check("containers: create, read, replace, query, delete", async {
        let container = new_container(database, "c", 400).await?;
        let mut properties = container.read(None).await?.into_model()?;
        equal(properties.id.as_ref(), "c")?;
        properties.default_ttl = TimeToLive::Seconds(3600);
        container.replace(properties, None).await?;
        equal(container.read(None).await?.into_model()?.default_ttl, TimeToLive::Seconds(3600))?;
        let found: Vec<ContainerProperties> = database.query_containers("SELECT * FROM c WHERE c.id = 'c'", None).await?.try_collect().await?;
        equal(found.len(), 1)?;
        container.delete(None).await?;
        that(again(database, "c").await.is_err(), "it is still there")
    })
    .await;
    check("containers: a second one of the name is a conflict", async {
        new_container(database, "twice", 400).await?;
        let properties = ContainerProperties::new("twice", PartitionKeyDefinition::from("/pk"));
        refused(409, database.create_container(properties, None).await)?;
        Ok(())
    })
    .await;
    check("containers: by their rid", async {
        let container = database.container_client("twice", None).await?;
        let rid = container.read(None).await?.into_model()?.system_properties.resource_id.ok_or("no rid")?;
        that(!rid.is_empty(), "an empty rid")?;
        create(&container, item("1", "a", 1)).await
    })
    .await;
    check("containers: a partition key of three levels", async {
        let properties = ContainerProperties::new("levels", PartitionKeyDefinition::from(("/a", "/b", "/c")));
        let container = container_of(database, properties, 20000).await?;
        for n in 0..12_i64 {
            let (a, b) = (format!("t{}", n % 2), format!("u{}", n % 3));
            let value = json!({"id": format!("i{n}"), "a": a, "b": b, "c": n});
            container.create_item((a.clone(), b.clone(), n), &format!("i{n}"), value, None).await?;
            let read: serde_json::Value = container.read_item((a, b, n), &format!("i{n}"), None).await?.into_model()?;
            equal(read["c"].as_i64(), Some(n))?;
        }
        let prefix = azure_data_cosmos::feed::FeedScope::partition(("t0", "u0"));
        equal(query(&container, "SELECT * FROM c", prefix, None).await?.len(), 2)
    })
    .await;
    check("containers: feed ranges cover one of several physical partitions", async {
        let container = new_container(database, "wide", 30000).await?;
        that(container.read_feed_ranges(None).await?.len() >= 3, "too few ranges")?;
        equal(container.feed_range_from_partition_key("a", None).await?.len(), 1)
    })
    .await;
}

async fn policies(database: &DatabaseClient) {
    check("policies: indexes of every kind come back as they were given", async {
        let composite = CompositeIndex::default()
            .with_property(CompositeIndexProperty::new("/a", CompositeIndexOrder::Ascending))
            .with_property(CompositeIndexProperty::new("/b", CompositeIndexOrder::Descending));
        let spatial = [SpatialType::Point, SpatialType::LineString, SpatialType::Polygon, SpatialType::MultiPolygon]
            .into_iter()
            .fold(SpatialIndex::new("/place/*"), SpatialIndex::with_type);
        let policy = IndexingPolicy::default()
            .with_indexing_mode(IndexingMode::Consistent)
            .with_included_path("/*")
            .with_excluded_path("/hidden/?")
            .with_composite_index(composite)
            .with_spatial_index(spatial);
        let properties = ContainerProperties::new("indexed", PartitionKeyDefinition::from("/pk")).with_indexing_policy(policy);
        let container = container_of(database, properties, 400).await?;
        let read = container.read(None).await?.into_model()?.indexing_policy.ok_or("no policy")?;
        equal(read.composite_indexes[0].properties[1].order.clone(), CompositeIndexOrder::Descending)?;
        equal(read.spatial_indexes[0].types.len(), 4)?;
        that(read.excluded_paths.iter().any(|each| each.path == "/hidden/?"), "an excluded path is missing")
    })
    .await;
    check("policies: unique keys are obeyed", async {
        let unique = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/mail"));
        let properties = ContainerProperties::new("unique", PartitionKeyDefinition::from("/pk")).with_unique_key_policy(unique);
        let container = container_of(database, properties, 400).await?;
        create(&container, json!({"id": "1", "pk": "a", "mail": "m"})).await?;
        let second = json!({"id": "2", "pk": "a", "mail": "m"});
        refused(409, container.create_item("a", "2", second, None).await)?;
        create(&container, json!({"id": "2", "pk": "b", "mail": "m"})).await
    })
    .await;
    check("policies: vectors, full text, conflicts and the change feed come back", async {
        let vectors = VectorEmbeddingPolicy::default()
            .with_embedding(VectorEmbedding::new("/vector", VectorDataType::Float32, 2, VectorDistanceFunction::Cosine));
        let text = FullTextPolicy::new("en-US").with_full_text_path(FullTextPath::new("/text").with_language("en-US"));
        let policy = IndexingPolicy::default()
            .with_included_path("/*")
            .with_vector_index(VectorIndex::new("/vector", VectorIndexType::Flat))
            .with_full_text_index(FullTextIndex::new("/text"));
        let properties = ContainerProperties::new("search", PartitionKeyDefinition::from("/pk"))
            .with_vector_embedding_policy(vectors)
            .with_full_text_policy(text)
            .with_indexing_policy(policy)
            .with_change_feed_policy(ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600)))
            .with_conflict_resolution_policy(ConflictResolutionPolicy::new(ConflictResolutionMode::LastWriterWins).with_resolution_path("/rank"));
        let container = container_of(database, properties, 400).await?;
        let read = container.read(None).await?.into_model()?;
        equal(read.vector_embedding_policy.ok_or("no vectors")?.embeddings.len(), 1)?;
        equal(read.full_text_policy.ok_or("no full text")?.full_text_paths.len(), 1)?;
        equal(read.conflict_resolution_policy.ok_or("no conflicts")?.resolution_path, "/rank".to_string())?;
        equal(read.change_feed_policy.and_then(|each| each.retention_duration()), Some(Duration::from_secs(600)))
    })
    .await;
}

async fn throughput(database: &DatabaseClient) {
    check("throughput: manual is read and replaced", async {
        let container = new_container(database, "manual", 400).await?;
        equal(container.read_throughput(None).await?.and_then(|each| each.throughput()), Some(400))?;
        container.begin_replace_throughput(ThroughputProperties::manual(500), None).await?.await?;
        equal(container.read_throughput(None).await?.and_then(|each| each.throughput()), Some(500))?;
        refused(400, container.begin_replace_throughput(ThroughputProperties::manual(450), None).await.map(drop))?;
        Ok(())
    })
    .await;
    check("throughput: autoscale is read and replaced", async {
        let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::autoscale(4000, Some(10)));
        database.create_container(ContainerProperties::new("autoscale", PartitionKeyDefinition::from("/pk")), Some(options)).await?;
        let container = database.container_client("autoscale", None).await?;
        let read = container.read_throughput(None).await?.ok_or("no throughput")?;
        equal((read.autoscale_maximum(), read.autoscale_increment()), (Some(4000), Some(10)))?;
        container.begin_replace_throughput(ThroughputProperties::autoscale(5000, None), None).await?.await?;
        equal(container.read_throughput(None).await?.and_then(|each| each.autoscale_maximum()), Some(5000))
    })
    .await;
    check("throughput: a database without one of its own has none", async {
        that(database.read_throughput(None).await?.is_none(), "a throughput")
    })
    .await;
}
