//! The client goes on through splits and merges: writes, reads, batches, queries and the change feed.

use crate::changefeed::{follow, numbers};
use crate::check::*;
use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::options::{ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint, QueryOptions};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::TryStreamExt;
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use time::macros::format_description;
use tokio::sync::Mutex;

const FIXED: i64 = 100;
const KEYS: i64 = 24;
const PARTITIONS_MAX: usize = 6;
const TIMES_LEAST: usize = 5;
const FEED_PAGES: usize = 10;
const LEAST: Duration = Duration::from_secs(3);
const MOST: Duration = Duration::from_secs(120);

struct Load {
    database: String,
    container: ContainerClient,
    items: Mutex<HashMap<String, i64>>,
    seen: Mutex<HashMap<String, i64>>,
    token: Mutex<Option<ContinuationToken>>,
    done: Mutex<[usize; 5]>,
}

fn key_of(n: i64) -> String {
    format!("k{}", n % KEYS)
}

fn name_of(value: &Value) -> String {
    format!("{}/{}", text(value, "pk"), text(value, "id"))
}

impl Load {
    /// A signed call of the admin API, on the container.
    async fn admin(&self, method: &str, name: &str, body: Option<Value>) -> Result<(u16, Value), Fault> {
        let path = format!("_pleiad/v1/dbs/{}/colls/splits", self.database);
        let format = format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");
        let date = time::OffsetDateTime::now_utc().format(&format)?;
        let signed = format!("{}\n{name}\n{path}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&STANDARD.decode(key())?)?;
        mac.update(signed.as_bytes());
        let proof = STANDARD.encode(mac.finalize().into_bytes());
        let token = format!("type%3Dmaster%26ver%3D1.0%26sig%3D{}", proof.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"));
        let request = reqwest::Client::new()
            .request(method.parse()?, format!("{}{path}/{name}", endpoint()))
            .header("authorization", token)
            .header("x-ms-date", date);
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), serde_json::from_slice(&answer.bytes().await?)?))
    }

    async fn partitions(&self) -> Result<Value, Fault> {
        let (status, told) = self.admin("GET", "partitions", None).await?;
        that(status == 200, format!("{status} {told}"))?;
        Ok(told)
    }

    /// Splits a partition, or merges two neighbours; what another change has overtaken is let go.
    async fn change(&self) -> Outcome {
        let told = self.partitions().await?;
        let ids: Vec<String> = told["partitions"].as_array().ok_or("no partitions")?.iter().map(|each| text(each, "id")).collect();
        let is_split = ids.len() < 2 || ids.len() < PARTITIONS_MAX && rand::random::<f64>() < 0.6;
        let first = rand::random::<u64>() as usize % if is_split { ids.len() } else { ids.len() - 1 };
        let (name, body) = if is_split {
            ("split", json!({"partition": ids[first]}))
        } else {
            ("merge", json!({"partitions": [ids[first], ids[first + 1]]}))
        };
        let (status, told) = self.admin("POST", name, Some(body)).await?;
        that([201, 202, 400, 404, 410, 412].contains(&status), format!("{status} {told}"))?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(())
    }

    async fn write(&self, n: i64) -> Outcome {
        let (id, key) = (format!("w{}", n % 50), key_of(n));
        self.container.upsert_item(key.clone(), &id, item(&id, &key, n), None).await?;
        let read: Value = self.container.read_item(key.clone(), &id, None).await?.into_model()?;
        equal(read["n"].as_i64(), Some(n))?;
        self.items.lock().await.insert(format!("{key}/{id}"), n);
        if n % 4 == 0 {
            self.container.delete_item(key.clone(), &id, None).await?;
            self.items.lock().await.remove(&format!("{key}/{id}"));
        }
        Ok(())
    }

    async fn batch(&self, n: i64) -> Outcome {
        let key = key_of(n);
        let pair = TransactionalBatch::new(key.clone())
            .upsert_item(item("pair-a", &key, n), None)?
            .upsert_item(item("pair-b", &key, n), None)?;
        let results = self.container.execute_transactional_batch(pair, None).await?.into_model()?;
        that(results.results().iter().all(|each| each.is_success()), "a batch failed")?;
        for id in ["pair-a", "pair-b"] {
            self.items.lock().await.insert(format!("{key}/{id}"), n);
        }
        Ok(())
    }

    /// The items that nobody changes are there once each, in order and page by page.
    async fn query(&self) -> Outcome {
        let options = QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(NonZeroU32::new(15).expect("not zero")));
        let text = "SELECT VALUE c.n FROM c WHERE c.fixed ORDER BY c.n";
        let found = query(&self.container, text, FeedScope::full_container(), Some(options)).await?;
        equal(found, (0..FIXED).map(Value::from).collect())?;
        let plain = query(&self.container, "SELECT VALUE c.n FROM c WHERE c.fixed", FeedScope::full_container(), None).await?;
        equal(plain.len() as i64, FIXED)
    }

    /// Reads some pages of the change feed from the last continuation on.
    async fn follow(&self) -> Outcome {
        let mut options = ChangeFeedOptions::default();
        if let Some(token) = self.token.lock().await.take() {
            options = options.with_continuation_token(token);
        }
        let mut pages =
            self.container.query_change_feed::<Value>(FeedScope::full_container(), ChangeFeedStartFrom::Beginning, Some(options)).await?;
        for _ in 0..FEED_PAGES {
            let page = pages.try_next().await?.ok_or("the feed ended")?;
            let mut seen = self.seen.lock().await;
            for value in page.items().iter().filter_map(|each| each.current()) {
                seen.insert(name_of(value), value["n"].as_i64().unwrap_or_default());
            }
        }
        *self.token.lock().await = Some(pages.to_continuation_token()?);
        Ok(())
    }

    async fn once(&self, activity: usize, turn: i64) -> Outcome {
        match activity {
            0 => self.change().await,
            1 => self.write(turn).await,
            2 => self.batch(turn).await,
            3 => self.query().await,
            _ => self.follow().await,
        }
    }

    /// One activity until each was done some times, or it fails.
    async fn repeat(&self, activity: usize, begin: Instant) -> Outcome {
        for turn in 0.. {
            let often = self.done.lock().await.iter().all(|times| *times >= TIMES_LEAST);
            if begin.elapsed() > MOST || often && begin.elapsed() > LEAST {
                break;
            }
            let outcome = self.once(activity, turn).await;
            // What has failed must not keep the others waiting.
            self.done.lock().await[activity] += if outcome.is_ok() { 1 } else { TIMES_LEAST };
            outcome?;
        }
        that(self.done.lock().await[activity] >= TIMES_LEAST, "too few times")
    }
}

pub async fn run() -> Outcome {
    let database = new_database("splits").await?;
    let container = new_container(&database, "splits", 20000).await?;
    for n in 0..FIXED {
        create(&container, json!({"id": format!("f{n}"), "pk": key_of(n), "fixed": true, "n": n})).await?;
    }
    let load = Load {
        database: database.name().unwrap_or_default().to_string(),
        container,
        items: Mutex::default(),
        seen: Mutex::default(),
        token: Mutex::default(),
        done: Mutex::default(),
    };
    let begin = Instant::now();
    let outcomes = futures::future::join_all((0..5).map(|activity| load.repeat(activity, begin))).await;
    let names = ["the partitions change", "writes, reads and deletes", "batches", "queries over all partitions", "the change feed"];
    for (name, outcome) in names.into_iter().zip(outcomes) {
        check(&format!("splits: {name}"), async { outcome }).await;
    }
    afterwards(&load).await;
    database.delete(None).await?;
    Ok(())
}

async fn afterwards(load: &Load) {
    check("splits: afterwards every acknowledged write is there once", async {
        for _ in 0..500 {
            if load.partitions().await?["settled"] == json!(true) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let found = query(&load.container, "SELECT * FROM c", FeedScope::full_container(), None).await?;
        let items = load.items.lock().await;
        equal(found.len(), FIXED as usize + items.len())?;
        for value in &found {
            let expected = items.get(&name_of(value));
            that(expected.is_none() || expected.copied() == value["n"].as_i64(), format!("{value} is not the last version"))?;
        }
        Ok(())
    })
    .await;
    check("splits: afterwards the change feed has told the last version of everything", async {
        let mut options = ChangeFeedOptions::default();
        if let Some(token) = load.token.lock().await.take() {
            options = options.with_continuation_token(token);
        }
        let (found, _) = follow(&load.container, FeedScope::full_container(), ChangeFeedStartFrom::Beginning, options).await?;
        that(numbers(&found).len() <= found.len(), "more numbers than changes")?;
        let mut seen = load.seen.lock().await;
        for value in found.iter().filter_map(|each| each.current()) {
            seen.insert(name_of(value), value["n"].as_i64().unwrap_or_default());
        }
        for (name, n) in load.items.lock().await.iter() {
            equal(seen.get(name), Some(n))?;
        }
        Ok(())
    })
    .await;
}
