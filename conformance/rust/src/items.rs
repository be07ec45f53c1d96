//! Items one by one: writes, etags, keys of every type, ids and options.

use crate::check::*;
use azure_core::http::Etag;
use azure_data_cosmos::PartitionKey;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::PartitionKeyValue;
use azure_data_cosmos::options::{ContentResponseOnWrite, ItemReadOptions, ItemWriteOptions, OperationOptionsBuilder, Precondition};
use serde_json::{Value, json};

pub async fn run() -> Outcome {
    let database = new_database("items").await?;
    let container = new_container(&database, "items", 20000).await?;
    writes(&container).await;
    etags(&container).await;
    keys(&container).await;
    options(&container).await;
    let fresh = again(&database, "items").await?;
    check("sessions: a token of another client is obeyed, and one that is no token refused", async {
        let written = container.upsert_item("a", "session", item("session", "a", 1), None).await?;
        let token = written.headers().session_token().ok_or("no session token")?.clone();
        fresh.read_item("a", "session", Some(ItemReadOptions::default().with_session_token(token))).await?;
        let wrong = ItemReadOptions::default().with_session_token("no token");
        refused(400, fresh.read_item("a", "session", Some(wrong)).await)?;
        Ok(())
    })
    .await;
    ids(&container).await;
    database.delete(None).await?;
    Ok(())
}

fn told() -> ItemWriteOptions {
    let options = OperationOptionsBuilder::new().with_content_response_on_write(ContentResponseOnWrite::Enabled).build();
    ItemWriteOptions::default().with_operation_options(options)
}

async fn writes(container: &ContainerClient) {
    check("items: create answers with etag, session, charge and, if it is asked for, the item", async {
        let silent = container.create_item("a", "1", item("1", "a", 1), None).await?;
        equal(u16::from(silent.status().status_code()), 201)?;
        let headers = silent.headers();
        that(headers.etag().is_some() && headers.session_token().is_some() && headers.request_charge().is_some(), "a header is missing")?;
        that(headers.server_duration().is_some() && headers.lsn().is_some(), "no duration or LSN")?;
        that(silent.into_body().is_empty(), "a body")?;
        let full: Value = container.create_item("a", "2", item("2", "a", 2), Some(told())).await?.into_model()?;
        equal(full["n"].as_i64(), Some(2))
    })
    .await;
    check("items: a second one of the id is a conflict", async {
        refused(409, container.create_item("a", "1", item("1", "a", 1), None).await)?;
        Ok(())
    })
    .await;
    check("items: read gives what was written, with the system properties", async {
        let found: Value = container.read_item("a", "1", None).await?.into_model()?;
        equal(found["n"].as_i64(), Some(1))?;
        for name in ["_rid", "_self", "_etag", "_ts"] {
            that(!found[name].is_null(), format!("no {name}"))?;
        }
        Ok(())
    })
    .await;
    check("items: replace, upsert and delete", async {
        let replaced: Value = container.replace_item("a", "1", item("1", "a", 10), Some(told())).await?.into_model()?;
        equal(replaced["n"].as_i64(), Some(10))?;
        equal(u16::from(container.upsert_item("a", "1", item("1", "a", 11), None).await?.status().status_code()), 200)?;
        equal(u16::from(container.upsert_item("a", "3", item("3", "a", 3), None).await?.status().status_code()), 201)?;
        equal(u16::from(container.delete_item("a", "3", None).await?.status().status_code()), 204)?;
        refused(404, container.read_item("a", "3", None).await)?;
        refused(404, container.delete_item("a", "3", None).await)?;
        refused(404, container.replace_item("a", "3", item("3", "a", 3), None).await)?;
        Ok(())
    })
    .await;
    check("items: one of another logical partition is not found, and a wrong key refused", async {
        refused(404, container.read_item("b", "1", None).await)?;
        refused(400, container.create_item("b", "9", item("9", "a", 1), None).await)?;
        Ok(())
    })
    .await;
    check("items: one of more than 2 MB is refused with 413", async {
        let big = json!({"id": "big", "pk": "a", "text": "x".repeat(2 << 20)});
        refused(413, container.create_item("a", "big", big, None).await)?;
        Ok(())
    })
    .await;
}

async fn etags(container: &ContainerClient) {
    check("etags: the old one is refused, the current one passes", async {
        let first = container.create_item("a", "etag", item("etag", "a", 0), None).await?.headers().etag().ok_or("no etag")?.clone();
        let with = |etag: &Etag| Some(ItemWriteOptions::default().with_precondition(Precondition::IfMatch(etag.clone())));
        let second = container.replace_item("a", "etag", item("etag", "a", 1), with(&first)).await?.headers().etag().ok_or("no etag")?.clone();
        that(first != second, "the same etag")?;
        refused(412, container.replace_item("a", "etag", item("etag", "a", 2), with(&first)).await)?;
        refused(412, container.upsert_item("a", "etag", item("etag", "a", 2), with(&first)).await)?;
        refused(412, container.delete_item("a", "etag", with(&first)).await)?;
        container.delete_item("a", "etag", with(&second)).await?;
        Ok(())
    })
    .await;
    check("etags: a read that finds nothing new is 304", async {
        let read = container.read_item("a", "1", None).await?;
        let etag = read.headers().etag().ok_or("no etag")?.clone();
        let unchanged = Some(ItemReadOptions::default().with_precondition(Precondition::IfNoneMatch(etag)));
        match container.read_item("a", "1", unchanged).await {
            Ok(answer) => equal(u16::from(answer.status().status_code()), 304),
            Err(error) => equal(u16::from(error.status().status_code()), 304),
        }
    })
    .await;
}

async fn keys(container: &ContainerClient) {
    let long = "k".repeat(1000);
    let all: Vec<(&str, PartitionKey, Value)> = vec![
        ("string", "k".into(), json!("k")),
        ("empty string", "".into(), json!("")),
        ("letters beyond ASCII", "Größe 漢字 🦊".into(), json!("Größe 漢字 🦊")),
        ("long string", long.clone().into(), json!(long)),
        ("whole number", (-7_i64).into(), json!(-7)),
        ("number", PartitionKey::try_from(1.5).expect("a number"), json!(1.5)),
        ("boolean", true.into(), json!(true)),
        ("null", PartitionKeyValue::NULL.into(), Value::Null),
    ];
    for (name, key, value) in all {
        check(&format!("keys: {name}"), async {
            container.create_item(key.clone(), "typed", json!({"id": "typed", "pk": value}), None).await?;
            let read: Value = container.read_item(key.clone(), "typed", None).await?.into_model()?;
            equal(&read["pk"], &value)?;
            let scope = azure_data_cosmos::feed::FeedScope::partition(key.clone());
            equal(query(container, "SELECT VALUE c.id FROM c", scope, None).await?, vec![json!("typed")])?;
            container.delete_item(key, "typed", None).await?;
            Ok(())
        })
        .await;
    }
    check("keys: an item without one", async {
        let none: PartitionKey = PartitionKeyValue::UNDEFINED.into();
        container.create_item(none.clone(), "none", json!({"id": "none"}), None).await?;
        container.read_item(none.clone(), "none", None).await?;
        container.delete_item(none, "none", None).await?;
        Ok(())
    })
    .await;
}

async fn options(container: &ContainerClient) {
    check("items: what is not there says how far the partition is", async {
        let refusal = refused(404, container.read_item("a", "absent", None).await)?;
        that(refusal.response().is_some_and(|answer| answer.headers().lsn.is_some()), "no LSN")
    })
    .await;
    check("diagnostics: tell of the request", async {
        let answer = container.read_item("a", "1", None).await?;
        that(!format!("{:?}", answer.diagnostics()).is_empty(), "no diagnostics")
    })
    .await;
}

async fn ids(container: &ContainerClient) {
    let long = "i".repeat(255);
    for id in [
        "plain", "with blank", "Größe", "漢字", "🦊", "a+b", "a%b", "%20", "a&b=c", "a'b\"c", "a;b,c:d", "(a)[b]{c}", "~a!b@c$d^e*f", "trailing.", &long,
    ] {
        let label: String = id.chars().take(24).collect();
        check(&format!("ids: {label}"), async {
            create(container, item(id, "ids", 0)).await?;
            let read: Value = container.read_item("ids", id, None).await?.into_model()?;
            equal(text(&read, "id"), id.to_string())?;
            container.replace_item("ids", id, item(id, "ids", 1), None).await?;
            container.delete_item("ids", id, None).await?;
            Ok(())
        })
        .await;
    }
}
