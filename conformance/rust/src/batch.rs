//! Several operations in one logical partition, all or nothing.

use crate::check::*;
use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::TransactionalBatchResponse;
use azure_data_cosmos::options::{BatchOptions, BatchReplaceOptions, ContentResponseOnWrite, OperationOptionsBuilder, Precondition};
use serde_json::Value;

async fn execute(container: &ContainerClient, batch: TransactionalBatch) -> Result<TransactionalBatchResponse, Fault> {
    let told = OperationOptionsBuilder::new().with_content_response_on_write(ContentResponseOnWrite::Enabled).build();
    let options = BatchOptions::default().with_operation_options(told);
    Ok(container.execute_transactional_batch(batch, Some(options)).await?.into_model()?)
}

fn statuses(response: &TransactionalBatchResponse) -> Vec<u16> {
    response.results().iter().map(|each| each.status_code()).collect()
}

pub async fn run() -> Outcome {
    let database = new_database("batch").await?;
    let container = new_container(&database, "batch", 400).await?;
    check("batch: every kind of operation, in order", async {
        let batch = TransactionalBatch::new("a")
            .create_item(item("1", "a", 1))?
            .upsert_item(item("2", "a", 2), None)?
            .replace_item("1", item("1", "a", 3), None)?
            .read_item("1", None)
            .delete_item("2", None);
        let response = execute(&container, batch).await?;
        equal(statuses(&response), vec![201, 201, 200, 200, 204])?;
        let read: Value = response.results()[3].into_model()?.ok_or("no body")?;
        equal(read["n"].as_i64(), Some(3))?;
        that(response.results()[0].etag().is_some() && response.results()[0].request_charge().is_some(), "no etag or charge")
    })
    .await;
    check("batch: one operation that fails undoes all, and is named", async {
        let batch = TransactionalBatch::new("a").create_item(item("3", "a", 3))?.create_item(item("1", "a", 1))?;
        equal(statuses(&execute(&container, batch).await?), vec![424, 409])?;
        refused(404, container.read_item("a", "3", None).await)?;
        Ok(())
    })
    .await;
    check("batch: etags of operations", async {
        let etag = container.read_item("a", "1", None).await?.headers().etag().ok_or("no etag")?.clone();
        for (etag, expected) in [("\"other\"".into(), 412), (etag, 200)] {
            let options = BatchReplaceOptions::default().with_precondition(Precondition::IfMatch(etag));
            let batch = TransactionalBatch::new("a").replace_item("1", item("1", "a", 9), Some(options))?;
            equal(statuses(&execute(&container, batch).await?), vec![expected])?;
        }
        Ok(())
    })
    .await;
    check("batch: a hundred operations pass, a hundred and one are refused", async {
        let mut batch = TransactionalBatch::new("a");
        for n in 0..100 {
            batch = batch.upsert_item(item(&format!("many{n}"), "a", n), None)?;
        }
        equal(execute(&container, batch.clone()).await?.results().len(), 100)?;
        let more = batch.upsert_item(item("many100", "a", 100), None)?;
        that(execute(&container, more).await.is_err(), "no refusal")
    })
    .await;
    database.delete(None).await?;
    Ok(())
}
