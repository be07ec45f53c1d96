//! One check is one line of output. A check that returns a fault has failed; the rest of its section still runs.

use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition, ThroughputProperties};
use azure_data_cosmos::options::{CreateContainerOptions, QueryOptions};
use azure_data_cosmos::{AccountReference, CosmosClient, CosmosError, CosmosRuntime, Query, RoutingStrategy};
use futures::TryStreamExt;
use serde_json::{Value, json};
use std::env::var;
use std::error::Error;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};

pub type Fault = Box<dyn Error + Send + Sync>;
pub type Outcome = Result<(), Fault>;

static PASSED: AtomicUsize = AtomicUsize::new(0);
static FAILED: AtomicUsize = AtomicUsize::new(0);

pub fn counts() -> (usize, usize) {
    (PASSED.load(Ordering::Relaxed), FAILED.load(Ordering::Relaxed))
}

pub fn fail(name: &str, fault: &(dyn Error + Send + Sync)) {
    FAILED.fetch_add(1, Ordering::Relaxed);
    let mut text = fault.to_string();
    let mut source = fault.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(600).collect();
    println!("FAIL  {name}: {line}");
}

pub async fn check(name: &str, action: impl Future<Output = Outcome>) {
    match action.await {
        Ok(()) => {
            PASSED.fetch_add(1, Ordering::Relaxed);
            println!("ok    {name}");
        }
        Err(fault) => fail(name, &*fault),
    }
}

pub fn that(holds: bool, text: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(text.into().into()) }
}

pub fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Outcome {
    that(found == expected, format!("{found:?} instead of {expected:?}"))
}

/// Requires that the service refuses with this status, and returns its error.
#[track_caller]
pub fn refused<T>(status: u16, result: azure_data_cosmos::Result<T>) -> Result<CosmosError, Fault> {
    match result {
        Ok(_) => Err(format!("expected a refusal with {status} at {}", Location::caller()).into()),
        Err(error) if u16::from(error.status().status_code()) == status => Ok(error),
        Err(error) => Err(format!("expected {status}: {error}").into()),
    }
}

pub fn endpoint() -> String {
    var("ACCOUNT_HOST").unwrap_or_default()
}

pub fn key() -> String {
    var("ACCOUNT_KEY").unwrap_or_default()
}

pub async fn client_with_key(key: String) -> azure_data_cosmos::Result<CosmosClient> {
    let address = endpoint().parse().expect("ACCOUNT_HOST is an address");
    let account = AccountReference::with_authentication_key(address, key);
    // Clients of one runtime share what they know of containers, and with it the key that was first used.
    let runtime = CosmosRuntime::builder().build().await?;
    CosmosClient::builder().with_runtime(runtime).build(account, RoutingStrategy::ProximityTo("East US".into())).await
}

pub async fn new_client() -> azure_data_cosmos::Result<CosmosClient> {
    client_with_key(key()).await
}

/// A database of its own for a section; `drop_database` deletes it afterwards.
pub async fn new_database(label: &str) -> Result<DatabaseClient, Fault> {
    let client = new_client().await?;
    let id = format!("check-{label}-{:016x}", rand::random::<u64>());
    client.create_database(&id, None).await?;
    Ok(client.database_client(id))
}

pub async fn new_container(
    database: &DatabaseClient,
    id: &str,
    throughput: u64,
) -> Result<ContainerClient, Fault> {
    let properties = ContainerProperties::new(id.to_string(), PartitionKeyDefinition::from("/pk"));
    container_of(database, properties, throughput).await
}

pub async fn container_of(
    database: &DatabaseClient,
    properties: ContainerProperties,
    throughput: u64,
) -> Result<ContainerClient, Fault> {
    let id = properties.id.to_string();
    let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(throughput));
    database.create_container(properties, Some(options)).await?;
    Ok(database.container_client(id, None).await?)
}

/// The same container by a client that has seen nothing yet.
pub async fn again(database: &DatabaseClient, container: &str) -> Result<ContainerClient, Fault> {
    let name = database.name().ok_or("a database without a name")?.to_string();
    Ok(new_client().await?.database_client(name).container_client(container.to_string(), None).await?)
}

pub fn item(id: &str, pk: &str, n: i64) -> Value {
    json!({"id": id, "pk": pk, "n": n})
}

pub async fn create(container: &ContainerClient, value: Value) -> Outcome {
    let (id, pk) = (text(&value, "id"), text(&value, "pk"));
    container.create_item(pk, &id, value, None).await?;
    Ok(())
}

pub fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_string()
}

pub async fn query(
    container: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
    options: Option<QueryOptions>,
) -> Result<Vec<Value>, Fault> {
    Ok(container.query_items::<Value>(query, scope, options).await?.try_collect().await?)
}
