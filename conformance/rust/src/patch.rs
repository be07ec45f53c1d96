//! Parts of items, changed by the server or by the client itself.

use crate::check::*;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{PatchInstructions, PatchOperation};
use azure_data_cosmos::options::{PatchItemOptions, PatchStrategy};
use serde_json::{Value, json};

async fn apply(
    container: &ContainerClient,
    operations: Vec<PatchOperation>,
    strategy: PatchStrategy,
) -> Result<Value, Fault> {
    let options = PatchItemOptions::default().with_strategy(strategy);
    container.patch_item("a", "1", PatchInstructions::from(operations), Some(options)).await?;
    Ok(container.read_item("a", "1", None).await?.into_model()?)
}

pub async fn run() -> Outcome {
    let database = new_database("patch").await?;
    let container = new_container(&database, "patch", 400).await?;
    for (label, strategy) in [("by the server", PatchStrategy::ServerSide), ("as the client chooses", PatchStrategy::Auto)] {
        container.upsert_item("a", "1", json!({"id": "1", "pk": "a", "n": 1, "list": [1, 3], "part": {"x": "y"}}), None).await?;
        check(&format!("patch: set, replace and remove {label}"), async {
            let operations = vec![
                PatchOperation::set("/new", json!({"deep": true})),
                PatchOperation::replace("/part/x", json!("z")),
            ];
            let found = apply(&container, operations, strategy).await?;
            equal((&found["new"], &found["part"]), (&json!({"deep": true}), &json!({"x": "z"})))?;
            equal(&apply(&container, vec![PatchOperation::remove("/new")], strategy).await?["new"], &Value::Null)
        })
        .await;
        check(&format!("patch: add, increment and move {label}"), async {
            let operations = vec![
                PatchOperation::add("/list/1", json!(2)),
                PatchOperation::add("/list/-", json!(4)),
                PatchOperation::increment("/n", 41_i64),
                PatchOperation::move_value("/part/x", "/moved"),
            ];
            let found = apply(&container, operations, strategy).await?;
            equal(&found["list"], &json!([1, 2, 3, 4]))?;
            equal((&found["n"], &found["moved"]), (&json!(42), &json!("z")))
        })
        .await;
        check(&format!("patch: what cannot be done changes nothing {label}"), async {
            let operations = vec![PatchOperation::set("/n", json!(7)), PatchOperation::remove("/absent")];
            that(apply(&container, operations, strategy).await.is_err(), "no refusal")?;
            let read: Value = container.read_item("a", "1", None).await?.into_model()?;
            equal(&read["n"], &json!(42))
        })
        .await;
        check(&format!("patch: an item that is not there is not found {label}"), async {
            let instructions = PatchInstructions::from(vec![PatchOperation::set("/n", json!(1))]);
            let options = PatchItemOptions::default().with_strategy(strategy);
            refused(404, container.patch_item("a", "absent", instructions, Some(options)).await)?;
            Ok(())
        })
        .await;
    }
    check("patch: more than ten operations are refused by the server", async {
        let operations = vec![PatchOperation::increment("/n", 1_i64); 11];
        that(apply(&container, operations, PatchStrategy::ServerSide).await.is_err(), "no refusal")
    })
    .await;
    database.delete(None).await?;
    Ok(())
}
