//! Queries over all partitions, which the client plans and merges itself, and in one.

use crate::check::*;
use azure_data_cosmos::Query;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::options::{QueryOptions, QueryPlanMode};
use futures::TryStreamExt;
use serde_json::{Value, json};

pub async fn run() -> Outcome {
    let database = new_database("queries").await?;
    let container = new_container(&database, "queries", 20000).await?;
    for n in 0..60 {
        let kind = ["red", "green", "blue"][n % 3];
        let value = json!({"id": format!("q{n:02}"), "pk": format!("k{}", n % 6), "n": n, "kind": kind,
            "tags": [format!("t{}", n % 4), "all"], "half": n as f64 / 2.0});
        create(&container, value).await?;
    }
    let everywhere = [
        ("SELECT VALUE c.n FROM c WHERE c.n = 7", json!([7])),
        ("SELECT c.id, c.half FROM c WHERE c.n = 3", json!([{"id": "q03", "half": 1.5}])),
        ("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC", json!([59, 58, 57])),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", json!([10, 11, 12])),
        ("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind", json!(["blue", "green", "red"])),
        ("SELECT VALUE t FROM c JOIN t IN c.tags WHERE c.n = 5", json!(["t1", "all"])),
        ("SELECT VALUE c.n FROM c WHERE c.n > 10 AND c.n < 20 AND c.kind IN ('red') ORDER BY c.n", json!([12, 15, 18])),
        ("SELECT VALUE UPPER(CONCAT(c.id, '-x')) FROM c WHERE STARTSWITH(c.id, 'q00')", json!(["Q00-X"])),
        ("SELECT * FROM c WHERE c.n > 1000", json!([])),
    ];
    for (text, expected) in everywhere {
        for mode in [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly] {
            check(&format!("queries: {text}, planned {mode:?}"), async {
                let options = QueryOptions::default().with_query_plan_mode(mode);
                let found = query(&container, text, FeedScope::full_container(), Some(options)).await?;
                equal(Value::from(found), expected.clone())
            })
            .await;
        }
    }
    let inside = [
        ("SELECT VALUE COUNT(1) FROM c", json!([10])),
        ("SELECT VALUE SUM(c.n) FROM c", json!([280])),
        ("SELECT MIN(c.n) AS low, MAX(c.n) AS high FROM c", json!([{"low": 1, "high": 55}])),
        ("SELECT VALUE AVG(c.n) FROM c", json!([28])),
        ("SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind", json!([{"kind": "green", "n": 10}])),
        ("SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 't1')", json!([5])),
    ];
    for (text, expected) in inside {
        check(&format!("queries: in one logical partition, {text}"), async {
            let found = query(&container, text, FeedScope::partition("k1"), None).await?;
            equal(Value::from(found), expected.clone())
        })
        .await;
    }
    check("queries: parameters of every type", async {
        let text = Query::from("SELECT VALUE [@list, @yes, @nothing, c.n] FROM c WHERE c.kind = @text AND c.n > @number AND c.n < 34")
            .with_parameter("@list", [1, 2])?
            .with_parameter("@yes", true)?
            .with_parameter("@nothing", ())?
            .with_parameter("@text", "red")?
            .with_parameter("@number", 30.5)?;
        let found = query(&container, text, FeedScope::full_container(), None).await?;
        equal(Value::from(found), json!([[[1, 2], true, null, 33]]))
    })
    .await;
    check("queries: each feed range, together all", async {
        let mut all = 0;
        for range in container.read_feed_ranges(None).await? {
            all += query(&container, "SELECT * FROM c", FeedScope::range(range), None).await?.len();
        }
        equal(all, 60)
    })
    .await;
    check("queries: pages have a charge, metrics and index metrics", async {
        let options = QueryOptions::default().with_populate_query_metrics(true).with_populate_index_metrics(true);
        let found = container.query_items::<Value>("SELECT * FROM c WHERE c.n < 5", FeedScope::full_container(), Some(options)).await?;
        let page = found.into_pages().try_next().await?.ok_or("no page")?;
        that(page.headers().request_charge().is_some(), "no charge")?;
        that(page.query_metrics().is_some_and(|told| told.contains("totalExecutionTimeInMs")), "no metrics")?;
        that(page.index_metrics().is_some_and(|told| told.contains("UtilizedSingleIndexes")), format!("{:?}", page.index_metrics()))
    })
    .await;
    for text in ["SELEC * FROM c", "SELECT VALUE NOPE(1) FROM c", "SELECT VALUE d.x FROM c"] {
        check(&format!("queries: refused with 400, {text}"), async {
            let refusal = match container.query_items::<Value>(text, FeedScope::full_container(), None).await {
                Ok(found) => found.try_collect::<Vec<_>>().await.map(drop),
                Err(error) => Err(error),
            };
            refused(400, refusal)?;
            Ok(())
        })
        .await;
    }
    database.delete(None).await?;
    Ok(())
}
