//! Who may do what: another key, and the key for reads.

use crate::check::*;
use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::feed::FeedScope;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub async fn run() -> Outcome {
    let database = new_database("access").await?;
    let container = new_container(&database, "guarded", 400).await?;
    create(&container, item("1", "a", 1)).await?;
    let name = database.name().unwrap_or_default().to_string();
    check("access: another key is refused", async {
        refused(401, client_with_key(STANDARD.encode("a key that is not the account's")).await)?;
        Ok(())
    })
    .await;
    check("access: the key for reads reads and queries, and writes nothing", async {
        let client = client_with_key(std::env::var("ACCOUNT_READ_ONLY_KEY")?).await?;
        let reader = client.database_client(name.clone()).container_client("guarded", None).await?;
        reader.read_item("a", "1", None).await?;
        equal(query(&reader, "SELECT * FROM c", FeedScope::full_container(), None).await?.len(), 1)?;
        refused(403, reader.create_item("a", "2", item("2", "a", 2), None).await)?;
        refused(403, reader.upsert_item("a", "1", item("1", "a", 2), None).await)?;
        refused(403, reader.delete_item("a", "1", None).await)?;
        let batch = TransactionalBatch::new("a").create_item(item("2", "a", 2))?;
        refused(403, reader.execute_transactional_batch(batch, None).await)?;
        refused(403, client.create_database("never", None).await)?;
        refused(403, reader.delete(None).await)?;
        Ok(())
    })
    .await;
    database.delete(None).await?;
    Ok(())
}
