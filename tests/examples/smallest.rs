//! The smallest example of each recipe, as a user would start it: on the embedded server, which it starts by
//! itself.

use crate::said;
use std::fs;
use std::path::Path;

/// The smallest examples, each with lines that it says.
const SMALLEST: &[(&str, &[&str])] = &[
    ("mutex", &["holds, fence ", "writes the report", "nobody else gets it meanwhile", "released"]),
    ("rw_lock", &["writes, fence ", "two read", "nobody writes meanwhile"]),
    ("permits", &["3 of 3 permits are out", "there is no fourth", "had again"]),
    ("multi_lock", &["holds the stock and reads the prices", "nobody else has the stock", "released both"]),
    (
        "partitioner",
        &["alone: [\"s1\"", "given up: members changed", "one: [\"s1\", \"s3\"], two: [\"s2\", \"s4\"]"],
    ),
    ("timed_lease", &["host-1 writes the report", "host-2 leaves it to another"]),
    (
        "tree_cache",
        &["/shop/us/limits has b\"200\"", "there is /shop/eu", "there is /shop/us", "nodes deleted"],
    ),
    ("barrier", &["the barrier is set", "nobody passes it", "all pass it once it is gone"]),
    ("double_barrier", &["both are in", "both are out"]),
    ("election", &["leads, fence ", "others see that host-7 leads", "schedules", "resigned"]),
    ("queue", &["1 job waits", "does: resize a picture", "0 jobs are left"]),
    ("simple_queue", &["took b\"first\", then b\"second\"", "the queue is empty"]),
    ("registry", &["registered orders", "picked host-7 at http://10.0.0.7:8080"]),
    ("membership", &["host-7 is in, at b\"10.0.0.7:8080\"", "left"]),
    ("config", &["the limit is 100", "the limit is 200 now"]),
    ("shared_value", &["the motto is b\"festina lente\"", "only the one who saw the last motto changed it"]),
    (
        "typed_node",
        &["/shops/eu/orders/17 has 2 lines", "read \"/shops/eu/orders/17\": the value of version 2"],
    ),
    ("atomic_counter", &["order 1", "orders 2 to 1001 for later"]),
];

#[tokio::test]
async fn the_smallest_example_of_each_recipe_says_what_it_did() {
    for (example, expected) in SMALLEST {
        let said = said(example, &[], None).await;
        let mut rest = &*said;
        for line in *expected {
            let at = rest
                .find(line)
                .unwrap_or_else(|| panic!("{example} does not say {line:?} in its turn:\n{said}"));
            rest = &rest[at + line.len()..];
        }
    }
}

#[test]
fn the_smallest_examples_have_at_most_thirty_lines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    for (example, _) in SMALLEST {
        let lines = fs::read_to_string(folder.join(example).with_extension("rs")).unwrap().lines().count();
        assert!(lines <= 30, "{example} has {lines} lines");
    }
}
