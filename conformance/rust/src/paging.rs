//! Pages of ordered queries whose sort keys are equal many times: each item once, in every order and page size.

use crate::check::*;
use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::models::*;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use futures::TryStreamExt;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

const ITEMS: usize = 120;

/// The sort keys of a query, with whether each falls.
type Order = [(&'static str, bool)];

pub async fn run() -> Outcome {
    let database = new_database("paging").await?;
    let composite = |second| {
        CompositeIndex::default()
            .with_property(CompositeIndexProperty::new("/tied", CompositeIndexOrder::Ascending))
            .with_property(CompositeIndexProperty::new("/other", second))
    };
    let policy = IndexingPolicy::default()
        .with_included_path("/*")
        .with_composite_index(composite(CompositeIndexOrder::Ascending))
        .with_composite_index(composite(CompositeIndexOrder::Descending));
    let properties = ContainerProperties::new("paging", PartitionKeyDefinition::from("/pk")).with_indexing_policy(policy);
    let container = container_of(&database, properties, 30000).await?;
    for n in 0..ITEMS {
        create(&container, tied(n)).await?;
    }
    let orders: [&Order; 11] = [
        &[],
        &[("same", false)],
        &[("same", true)],
        &[("tied", false)],
        &[("tied", true)],
        &[("mixed", false)],
        &[("mixed", true)],
        &[("tied", false), ("other", false)],
        &[("tied", true), ("other", true)],
        &[("tied", false), ("other", true)],
        &[("tied", true), ("other", false)],
    ];
    for order in orders {
        pages_in(&database, &container, order).await;
    }
    database.delete(None).await?;
    Ok(())
}

/// Values of each type, most of them many times; every sixth item lacks the property.
fn tied(n: usize) -> Value {
    let mut value = json!({"id": format!("p{n:03}"), "pk": format!("k{}", n % 9), "tied": n % 3, "other": n % 2, "same": "x"});
    match n % 6 {
        0 => {}
        1 => value["mixed"] = Value::Null,
        2 => value["mixed"] = json!(n % 12 == 2),
        3 => value["mixed"] = json!(n % 4),
        _ => value["mixed"] = json!(["", "a", "ä", "b"][n / 6 % 4]),
    }
    value
}

async fn pages_in(database: &DatabaseClient, container: &ContainerClient, order: &Order) {
    let keys: Vec<String> = order.iter().map(|(name, falls)| format!("c.{name} {}", if *falls { "DESC" } else { "ASC" })).collect();
    let by = if keys.is_empty() { String::new() } else { format!(" ORDER BY {}", keys.join(", ")) };
    let text = format!("SELECT * FROM c{by}");
    let mut whole: Option<Vec<String>> = None;
    for size in [1000, 1, 7, 40] {
        let mut names = Vec::new();
        check(&format!("paging:{by} in pages of {size}"), async {
            let found = query(container, text.as_str(), FeedScope::full_container(), Some(page_size(size))).await?;
            names = in_order(&found, order)?;
            match &whole {
                Some(expected) if !order.is_empty() => equal(&names, expected),
                _ => Ok(()),
            }
        })
        .await;
        whole.get_or_insert(names);
    }
    check(&format!("paging:{by}, each page by a client that has seen nothing yet"), async {
        let names = in_order(&resumed(database, &text, FeedScope::full_container, 17).await?, order)?;
        if order.is_empty() { Ok(()) } else { equal(Some(names), whole.clone()) }
    })
    .await;
    check(&format!("paging:{by} in one logical partition"), async {
        let all = query(container, text.as_str(), FeedScope::partition("k4"), None).await?;
        equal(all.len(), 13)?;
        equal(resumed(database, &text, || FeedScope::partition("k4"), 4).await?, all)
    })
    .await;
}

fn page_size(size: u32) -> QueryOptions {
    QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(NonZeroU32::new(size).expect("not zero")))
}

async fn resumed(database: &DatabaseClient, text: &str, scope: impl Fn() -> FeedScope, size: u32) -> Result<Vec<Value>, Fault> {
    let mut found = Vec::new();
    let mut token: Option<ContinuationToken> = None;
    loop {
        let container = again(database, "paging").await?;
        let mut options = page_size(size);
        if let Some(token) = token.take() {
            options = options.with_continuation_token(token);
        }
        let mut pages = container.query_items::<Value>(text, scope(), Some(options)).await?.into_pages();
        let Some(page) = pages.try_next().await? else { return Ok(found) };
        found.extend(page.into_items());
        that(found.len() <= ITEMS, "more items than there are")?;
        token = Some(pages.to_continuation_token()?);
    }
}

/// Requires every item once and in the order asked for, and returns the ids.
fn in_order(found: &[Value], order: &Order) -> Result<Vec<String>, Fault> {
    let names: Vec<String> = found.iter().map(|each| text(each, "id")).collect();
    let distinct = names.iter().collect::<BTreeSet<_>>().len();
    that(names.len() == ITEMS && distinct == ITEMS, format!("{} items, {distinct} distinct", names.len()))?;
    for pair in found.windows(2) {
        for (name, falls) in order {
            let compared = compare(pair[0].get(name), pair[1].get(name));
            let compared = if *falls { compared.reverse() } else { compared };
            that(compared != Ordering::Greater, format!("{} stands before {}", pair[0], pair[1]))?;
            if compared == Ordering::Less {
                break;
            }
        }
    }
    Ok(names)
}

fn rank(value: Option<&Value>) -> u8 {
    match value {
        None => 0,
        Some(Value::Null) => 1,
        Some(Value::Bool(_)) => 2,
        Some(Value::Number(_)) => 3,
        Some(_) => 4,
    }
}

fn compare(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    rank(left).cmp(&rank(right)).then_with(|| match (left, right) {
        (Some(Value::Bool(a)), Some(Value::Bool(b))) => a.cmp(b),
        (Some(Value::Number(a)), Some(Value::Number(b))) => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        (Some(Value::String(a)), Some(Value::String(b))) => a.cmp(b),
        _ => Ordering::Equal,
    })
}
