//! Uses the operations of the official Rust client against a server, and says what came back wrong. Variables:
//! ACCOUNT_HOST, ACCOUNT_KEY, ACCOUNT_READ_ONLY_KEY, and SECTIONS, names separated by commas (all of them without).
//! Exit code 1 when a check failed.

mod access;
mod batch;
mod catalog;
mod changefeed;
mod check;
mod items;
mod paging;
mod patch;
mod queries;
mod splits;
mod transport;

use check::{Outcome, counts, fail};
use std::pin::Pin;

type Section = fn() -> Pin<Box<dyn Future<Output = Outcome>>>;

#[tokio::main]
async fn main() {
    let sections: [(&str, Section); 10] = [
        ("transport", || Box::pin(transport::run())),
        ("catalog", || Box::pin(catalog::run())),
        ("items", || Box::pin(items::run())),
        ("patch", || Box::pin(patch::run())),
        ("batch", || Box::pin(batch::run())),
        ("queries", || Box::pin(queries::run())),
        ("paging", || Box::pin(paging::run())),
        ("changefeed", || Box::pin(changefeed::run())),
        ("access", || Box::pin(access::run())),
        ("splits", || Box::pin(splits::run())),
    ];
    let names: Vec<&str> = sections.iter().map(|section| section.0).collect();
    let asked = std::env::var("SECTIONS").unwrap_or_else(|_| names.join(","));
    if let Some(unknown) = asked.split(',').find(|name| !names.contains(name)) {
        eprintln!("unknown section {unknown}; there are {}", names.join(", "));
        std::process::exit(2);
    }
    for (name, run) in sections {
        if asked.split(',').any(|each| each == name) {
            // What a section sets up for its checks may fail too; then none of the rest can be checked.
            if let Err(fault) = run().await {
                fail(&format!("{name}: could not be set up"), &*fault);
            }
        }
    }
    let (passed, failed) = counts();
    println!("{passed} passed, {failed} failed");
    std::process::exit(i32::from(failed > 0));
}
