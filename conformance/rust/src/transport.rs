//! How the client comes to the server: plain HTTP, where it tries HTTP/2 first, TLS, and both encodings of bodies.

use crate::check::*;
use azure_data_cosmos::options::{BinaryEncodingOptions, ConnectionPoolOptions, ServerCertificateValidation};
use azure_data_cosmos::{AccountReference, CosmosClient, CosmosRuntime, RoutingStrategy};
use serde_json::{Value, json};

pub async fn run() -> Outcome {
    check("transport: plain HTTP, after a try of HTTP/2", async {
        new_client().await?;
        Ok(())
    })
    .await;
    check("transport: TLS with the certificate of an emulator", async {
        let pool = ConnectionPoolOptions::builder()
            .with_server_certificate_validation(ServerCertificateValidation::RequiredUnlessEmulator)
            .build()?;
        let runtime = CosmosRuntime::builder().with_connection_pool(pool).build().await?;
        let address = endpoint().replace("http:", "https:").parse()?;
        let account = AccountReference::with_authentication_key(address, key());
        CosmosClient::builder().with_runtime(runtime).build(account, RoutingStrategy::ProximityTo("East US".into())).await?;
        Ok(())
    })
    .await;
    let database = new_database("transport").await?;
    let name = database.name().unwrap_or_default().to_string();
    new_container(&database, "bodies", 400).await?;
    for (label, enabled) in [("binary", true), ("text", false)] {
        check(&format!("transport: bodies as {label}"), async {
            let account = AccountReference::with_authentication_key(endpoint().parse()?, key());
            let client = CosmosClient::builder()
                .with_binary_encoding_options(BinaryEncodingOptions::new().with_enabled(enabled))
                .build(account, RoutingStrategy::ProximityTo("East US".into()))
                .await?;
            let container = client.database_client(name.clone()).container_client("bodies", None).await?;
            let value = json!({"id": label, "pk": "a", "text": "Größe 漢字 🦊 \u{1}", "numbers": [0, -1, 1.5, 1e-300, 9007199254740991_i64],
                "nested": {"a": [null, true, {"b": []}], "empty": {}}, "long": "x".repeat(5000)});
            container.create_item("a", label, &value, None).await?;
            let read: Value = container.read_item("a", label, None).await?.into_model()?;
            for (name, expected) in value.as_object().ok_or("no object")? {
                equal(&read[name], expected)?;
            }
            let scope = azure_data_cosmos::feed::FeedScope::partition("a");
            let found = query(&container, format!("SELECT VALUE c.nested FROM c WHERE c.id = '{label}'"), scope, None).await?;
            equal(found, vec![value["nested"].clone()])
        })
        .await;
    }
    database.delete(None).await?;
    Ok(())
}
