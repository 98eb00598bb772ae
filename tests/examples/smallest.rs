//! The smallest example of each recipe as a user would start it, on the embedded server that it starts.

use crate::output;
use std::fs;
use std::path::Path;

/// The smallest examples, each with lines that it prints, in order.
const SMALLEST: &[(&str, &[&str])] = &[
    (
        "mutex",
        &["acquired the lock, fence ", "writing the report", "no other client can acquire", "released"],
    ),
    ("rw_lock", &["acquired the write lock, fence ", "two clients read", "no client can write meanwhile"]),
    ("permits", &["3 of 3 permits are taken", "no fourth permit", "acquired again"]),
    ("multi_lock", &["holding the stock lock and reading the prices", "no other client", "released both"]),
    (
        "partitioner",
        &[
            "only member: [\"s1\"",
            "giving up the share: members changed",
            "one: [\"s1\", \"s3\"], two: [\"s2\", \"s4\"]",
        ],
    ),
    ("timed_lease", &["host-1 writes the report", "host-2 skips the report"]),
    (
        "tree_cache",
        &["/shop/us/limits has b\"200\"", "cached: /shop/eu", "cached: /shop/us", "nodes deleted"],
    ),
    ("barrier", &["the barrier is set", "no process passes", "all processes pass"]),
    ("double_barrier", &["both members have entered", "both members have left"]),
    ("election", &["elected as leader, fence ", "the leader is host-7", "scheduling", "resigned"]),
    ("queue", &["1 job in the queue", "working on: resize a picture", "0 jobs left"]),
    ("simple_queue", &["took b\"first\", then b\"second\"", "the queue is empty"]),
    ("registry", &["registered an instance of orders", "picked host-7 at http://10.0.0.7:8080"]),
    ("membership", &["host-7 is a member, at b\"10.0.0.7:8080\"", "left"]),
    ("config", &["the limit is 100", "the limit changed to 200"]),
    ("shared_value", &["the motto is b\"festina lente\"", "an outdated motto was rejected"]),
    (
        "typed_node",
        &["/shops/eu/orders/17 has 2 lines", "read \"/shops/eu/orders/17\": the value of version 2"],
    ),
    ("atomic_counter", &["order 1", "reserved orders 2 to 1001"]),
];

#[tokio::test]
async fn the_smallest_example_of_each_recipe_prints_what_it_did() {
    for (example, expected) in SMALLEST {
        let output = output(example, &[], None).await;
        let mut rest = &*output;
        for line in *expected {
            let at = rest
                .find(line)
                .unwrap_or_else(|| panic!("{example} did not print {line:?} in order:\n{output}"));
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
