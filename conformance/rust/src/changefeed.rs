//! The change feed: whole, by ranges, of one logical partition, resumed, and with all versions.

use crate::check::*;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::models::{ChangeFeedItem, ChangeFeedOperationType, ChangeFeedPolicy, ContainerProperties, PartitionKeyDefinition};
use azure_data_cosmos::options::{ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint};
use futures::TryStreamExt;
use serde_json::Value;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

/// The feed has no end: this many empty pages in a row are taken for one.
const QUIET_PAGES: usize = 8;

pub async fn follow(
    container: &ContainerClient,
    scope: FeedScope,
    start: ChangeFeedStartFrom,
    options: ChangeFeedOptions,
) -> Result<(Vec<ChangeFeedItem<Value>>, ContinuationToken), Fault> {
    let mut pages = container.query_change_feed::<Value>(scope, start, Some(options)).await?;
    let (mut found, mut quiet) = (Vec::new(), 0);
    while quiet < QUIET_PAGES {
        let page = pages.try_next().await?.ok_or("the feed ended")?;
        quiet = if page.items().is_empty() { quiet + 1 } else { 0 };
        found.extend(page.into_items());
        that(found.len() < 100_000, "the change feed does not end")?;
    }
    Ok((found, pages.to_continuation_token()?))
}

pub fn numbers(found: &[ChangeFeedItem<Value>]) -> Vec<i64> {
    found.iter().filter_map(|each| each.current()?["n"].as_i64()).collect()
}

fn page_size(size: u32) -> ChangeFeedOptions {
    ChangeFeedOptions::default().with_max_item_count(MaxItemCountHint::Limit(NonZeroU32::new(size).expect("not zero")))
}

pub async fn run() -> Outcome {
    let database = new_database("changefeed").await?;
    let container = new_container(&database, "feed", 30000).await?;
    for n in 0..50 {
        create(&container, item(&format!("f{n}"), &format!("k{}", n % 10), n)).await?;
    }
    for size in [1, 7, 100] {
        check(&format!("change feed: of the whole container in pages of {size}"), async {
            let (found, _) = follow(&container, FeedScope::full_container(), ChangeFeedStartFrom::Beginning, page_size(size)).await?;
            equal(found.len(), 50)?;
            equal(BTreeSet::from_iter(numbers(&found)).len(), 50)
        })
        .await;
    }
    check("change feed: each feed range tells its own, together all", async {
        let mut all = 0;
        for range in container.read_feed_ranges(None).await? {
            all += follow(&container, FeedScope::range(range), ChangeFeedStartFrom::Beginning, page_size(100)).await?.0.len();
        }
        equal(all, 50)
    })
    .await;
    check("change feed: of one logical partition, in the order of the changes", async {
        let (found, _) = follow(&container, FeedScope::partition("k3"), ChangeFeedStartFrom::Beginning, page_size(2)).await?;
        equal(numbers(&found), vec![3, 13, 23, 33, 43])
    })
    .await;
    check("change feed: goes on from its token with what is new, in a client that has seen nothing yet", async {
        let (_, token) = follow(&container, FeedScope::full_container(), ChangeFeedStartFrom::Beginning, page_size(100)).await?;
        container.upsert_item("k3", "f3", item("f3", "k3", 103), None).await?;
        create(&container, item("new", "new", 200)).await?;
        container.delete_item("k4", "f4", None).await?;
        let options = page_size(100).with_continuation_token(token);
        let fresh = again(&database, "feed").await?;
        let (found, _) = follow(&fresh, FeedScope::full_container(), ChangeFeedStartFrom::Beginning, options).await?;
        equal(BTreeSet::from_iter(numbers(&found)), BTreeSet::from([103, 200]))
    })
    .await;
    check("change feed: from now there is nothing until something changes", async {
        let (found, token) = follow(&container, FeedScope::full_container(), ChangeFeedStartFrom::Now, page_size(100)).await?;
        equal(found.len(), 0)?;
        container.upsert_item("now", "now", item("now", "now", 300), None).await?;
        let options = page_size(100).with_continuation_token(token);
        let (found, _) = follow(&container, FeedScope::full_container(), ChangeFeedStartFrom::Now, options).await?;
        equal(numbers(&found), vec![300])
    })
    .await;
    check("change feed: all versions and deletes", async {
        let policy = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
        let properties = ContainerProperties::new("versions", PartitionKeyDefinition::from("/pk")).with_change_feed_policy(policy);
        let container = container_of(&database, properties, 400).await?;
        let versions = || page_size(100).with_mode(ChangeFeedMode::AllVersionsAndDeletes);
        let (_, token) = follow(&container, FeedScope::full_container(), ChangeFeedStartFrom::Now, versions()).await?;
        create(&container, item("1", "a", 1)).await?;
        container.upsert_item("a", "1", item("1", "a", 2), None).await?;
        container.delete_item("a", "1", None).await?;
        let options = versions().with_continuation_token(token);
        let (found, _) = follow(&container, FeedScope::full_container(), ChangeFeedStartFrom::Now, options).await?;
        let kinds: Vec<_> = found.iter().filter_map(|each| each.operation_type()).collect();
        equal(kinds, vec![ChangeFeedOperationType::Create, ChangeFeedOperationType::Replace, ChangeFeedOperationType::Delete])
    })
    .await;
    database.delete(None).await?;
    Ok(())
}
