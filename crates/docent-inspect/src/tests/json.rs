use super::tree::Tree;
use super::{DOCENT, UUID};
use crate::Kind;
use serde_json::{Value, json};

fn serialized(tree: &Tree, path: &str) -> Value {
    serde_json::to_value(tree.report(path)).unwrap()
}

#[test]
fn the_form_of_a_mutex_is_stable() {
    let name = format!("_c_{UUID}-lock-0000000001");
    let tree = Tree::default().changed(&format!("/m/{name}"), DOCENT, 500);
    let expected = json!({
        "path": "/m",
        "kind": "mutex",
        "contenders": [{
            "name": name,
            "number": 1,
            "role": "exclusive",
            "holds": true,
            "waits_for": null,
            "since_ms": 1_001_000,
            "age_ms": 3_599_000,
            "held": { "since_ms": 1_001_500, "age_ms": 3_598_500 },
            "fence": 2,
            "session": "0x10000a3f",
            "identity": DOCENT,
            "client": { "host": "web-1", "pid": 12, "label": "nightly import" },
            "is_revoked": false,
            "writer": "docent",
        }],
        "may_be": ["election"],
        "part_of": null,
        "writers": ["docent"],
        "refused": [],
        "left_out": { "nodes": 0, "deep": 0, "data": 0 },
        "as_of_zxid": 2,
        "clock": { "now_ms": 4_600_000, "source": "own_node" },
    });
    assert_eq!(serialized(&tree, "/m"), expected);
}

#[test]
fn the_kind_in_json_is_the_name_of_the_kind() {
    let uuid = UUID;
    let tree = Tree::default()
        .ephemeral(&format!("/rw/_c_{uuid}-__READ__0000000001"), "")
        .ephemeral(&format!("/e/_c_{uuid}-latch-0000000001"), "")
        .ephemeral(&format!("/s/leases/_c_{uuid}-lease-0000000001"), "")
        .node("/q/qn-0000000001", "")
        .node("/n", "4")
        .node("/v", "text")
        .node("/b", DOCENT)
        .ephemeral(&format!("/d/{uuid}"), "")
        .ephemeral("/g/web-1", "")
        .node("/l/lease_holder", "")
        .node("/c/_history", "")
        .node("/p", "");
    for (path, kind) in [
        ("/rw", Kind::ReadWriteLock),
        ("/e", Kind::Election),
        ("/s", Kind::Semaphore),
        ("/q", Kind::Queue),
        ("/n", Kind::Counter),
        ("/v", Kind::Value),
        ("/b", Kind::Barrier),
        ("/d", Kind::DoubleBarrier),
        ("/g", Kind::Membership),
        ("/l", Kind::TimedLease),
        ("/c", Kind::Config),
        ("/p", Kind::Plain),
        ("/nothing", Kind::Absent),
    ] {
        assert_eq!(serialized(&tree, path)["kind"], kind.name(), "{path}");
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}
