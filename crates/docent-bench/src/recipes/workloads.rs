//! The workloads with their targets.

use super::side::Side;
use super::target::Target;
use super::target::Target::{Absolute, AtLeast, AtMost};
use super::workload::{Row, Workload};

/// All workloads with targets, in the order in which they are measured and reported.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        kazoo: Some("mutex clients=1"),
        bare: Some("bare-mutex clients=1"),
        ..curator(
            "uncontended",
            "mutex clients=1",
            &[
                row("mutex, uncontended, 1/s", "rate", AtLeast(1.7)),
                row("its client CPU, µs", "cpu", AtMost(0.35)),
                row("its requests", "requests", Absolute(3.0)),
            ],
        )
    },
    Workload {
        peer: Some((Side::Curator, "mutex clients=1")),
        bare: Some("bare-mutex clients=1 drop=1"),
        ..curator(
            "dropped",
            "mutex clients=1 drop=1",
            &[row("the same, guard dropped, 1/s", "rate", AtLeast(2.3))],
        )
    },
    Workload {
        kazoo: Some("mutex clients=8"),
        bare: Some("bare-mutex clients=8"),
        ..curator(
            "contended-8",
            "mutex clients=8",
            &[
                row("mutex, 8 contenders, 1/s", "rate", AtLeast(1.7)),
                row("its client CPU, µs", "cpu", AtMost(0.35)),
                row("its requests", "requests", Absolute(6.0)),
            ],
        )
    },
    Workload {
        bare: Some("bare-mutex clients=32"),
        ..curator(
            "contended-32",
            "mutex clients=32",
            &[
                row("mutex, 32 contenders, 1/s", "rate", AtLeast(1.7)),
                row("its client CPU, µs", "cpu", AtMost(0.35)),
                row("its requests", "requests", Absolute(6.0)),
            ],
        )
    },
    Workload {
        bare: Some("bare-mutex clients=128"),
        ..curator(
            "contended-128",
            "mutex clients=128",
            &[
                row("mutex, 128 contenders, 1/s", "rate", AtLeast(2.0)),
                row("its requests", "requests", Absolute(6.0)),
            ],
        )
    },
    Workload {
        peer: Some((Side::Curator, "mutex clients=8")),
        ..curator(
            "shared",
            "shared tasks=8",
            &[row("mutex shared by 8 tasks, beside 8 contenders, 1/s", "rate", AtLeast(200.0))],
        )
    },
    curator(
        "read-write",
        "read-write clients=16",
        &[row("read/write lock, 16 clients, 90% readers, 1/s", "rate", AtLeast(1.7))],
    ),
    Workload {
        bare: Some("bare-election"),
        ..curator(
            "resign",
            "election candidates=4",
            &[row("leader resigns → next leads, p50 µs", "p50", AtMost(0.6))],
        )
    },
    Workload {
        kazoo: Some("queue producers=1 consumers=1"),
        bare: Some("bare-queue"),
        ..queue("queue-1x1", ONE, ONE, &[row("queue 1×1, one by one, 1/s", "rate", AtLeast(2.0))])
    },
    Workload {
        kazoo: Some("queue producers=4 consumers=4"),
        ..queue(
            "queue-4x4",
            FOUR,
            FOUR,
            &[
                row("queue 4×4, one by one, 1/s", "rate", AtLeast(2.0)),
                row("its requests for each item", "requests", Absolute(12.0)),
            ],
        )
    },
    queue(
        "queue-batch-1x1",
        "queue producers=1 consumers=1 batch=10",
        ONE,
        &[row("queue 1×1, batches of 10, 1/s", "rate", AtLeast(8.0))],
    ),
    queue(
        "queue-batch-4x4",
        "queue producers=4 consumers=4 batch=10",
        FOUR,
        &[row("queue 4×4, batches of 10, 1/s", "rate", AtLeast(6.0))],
    ),
    queue(
        "queue-prefetch",
        "queue producers=1 consumers=1 prefetch=32 flight=64",
        ONE,
        &[row("queue 1×1, 32 claimed ahead, 1/s", "rate", AtLeast(6.0))],
    ),
    queue(
        "queue-burst-1x1",
        "queue-burst producers=1 consumers=1 items=5000 flight=64",
        ONE,
        &[row("queue 1×1, burst of 5,000, 1/s", "rate", AtLeast(2.4))],
    ),
    queue(
        "queue-burst-4x4",
        "queue-burst producers=4 consumers=4 items=5000 flight=64",
        FOUR,
        &[row("queue 4×4, burst of 5,000, 1/s", "rate", AtLeast(1.4))],
    ),
    curator(
        "simple-100",
        "simple-queue backlog=100",
        &[untargeted("SimpleQueue, backlog of 100, 1/s", "rate")],
    ),
    Workload {
        peer: Some((Side::Docent, "simple-queue backlog=100")),
        ..curator(
            "simple-50000",
            "simple-queue backlog=50000",
            &[row("SimpleQueue, backlog of 50,000, 1/s, beside 100", "rate", AtLeast(0.9))],
        )
    },
    Workload {
        bare: Some("bare-view instances=5000"),
        ..discovery(
            "view-5000",
            "view instances=5000",
            5_000,
            &[row("cold view of 5,000, p50 µs", "p50", AtMost(0.08))],
        )
    },
    Workload {
        bare: Some("bare-change"),
        ..discovery(
            "change-1000",
            "change",
            1_000,
            &[row("change → seen, of 1,000, p50 µs", "p50", AtMost(1.0))],
        )
    },
    Workload {
        bare: Some("bare-change"),
        ..discovery(
            "change-5000",
            "change",
            5_000,
            &[row("change → seen, of 5,000, p50 µs", "p50", AtMost(0.8))],
        )
    },
    Workload {
        bare: Some("bare-join"),
        ..discovery("join-1000", "join", 1_000, &[row("join → seen, of 1,000, p50 µs", "p50", AtMost(1.5))])
    },
    Workload {
        bare: Some("bare-join"),
        ..discovery("join-5000", "join", 5_000, &[row("join → seen, of 5,000, p50 µs", "p50", AtMost(3.0))])
    },
    Workload {
        peer: Some((Side::Curator, "join")),
        bare: Some("bare-join persistent=1"),
        ..discovery(
            "join-persistent-1000",
            "join persistent=1",
            1_000,
            &[row("join → seen, of 1,000, persistent watches, p50 µs", "p50", AtMost(1.0))],
        )
    },
    Workload {
        peer: Some((Side::Curator, "join")),
        bare: Some("bare-join persistent=1"),
        ..discovery(
            "join-persistent-5000",
            "join persistent=1",
            5_000,
            &[row("join → seen, of 5,000, persistent watches, p50 µs", "p50", AtMost(1.0))],
        )
    },
    Workload {
        bare: Some("bare-publish subscribers=100"),
        ..curator(
            "publish",
            "publish subscribers=100",
            &[
                row("published → 100 subscribers, p50 µs", "p50", AtMost(0.3)),
                untargeted("the same from the call, p50 µs", "call_p50"),
            ],
        )
    },
    alone(
        "memory-waiter",
        "memory-waiter count=1000",
        0,
        &[row("memory of a waiter, kB", KB, Absolute(7.0))],
    ),
    alone(
        "memory-client",
        "memory-client count=1000",
        0,
        &[row("memory of an idle client, kB", KB, Absolute(18.6))],
    ),
    alone(
        "memory-viewed",
        "memory-viewed instances=5000",
        5_000,
        &[row("memory of an instance in a view, kB", KB, Absolute(1.7))],
    ),
];

pub(super) const KB: &str = "kilobytes";
/// Docent's batches are compared with Curator's single items, because a batch in Curator is one item for
/// everything except its reader.
const ONE: &str = "queue producers=1 consumers=1";
const FOUR: &str = "queue producers=4 consumers=4";

/// Returns a workload for which Curator receives the same order.
pub(super) const fn curator(name: &'static str, order: &'static str, rows: &'static [Row]) -> Workload {
    Workload {
        name,
        subject: order,
        peer: Some((Side::Curator, order)),
        kazoo: None,
        bare: None,
        instances: 0,
        rows,
    }
}

const fn queue(
    name: &'static str,
    subject: &'static str,
    peer: &'static str,
    rows: &'static [Row],
) -> Workload {
    Workload { subject, peer: Some((Side::Curator, peer)), ..curator(name, subject, rows) }
}

/// Returns a workload on a service whose instances exist beforehand.
pub(super) const fn discovery(
    name: &'static str,
    order: &'static str,
    instances: usize,
    rows: &'static [Row],
) -> Workload {
    Workload { instances, ..curator(name, order, rows) }
}

/// Returns a workload of Docent alone.
pub(super) const fn alone(
    name: &'static str,
    order: &'static str,
    instances: usize,
    rows: &'static [Row],
) -> Workload {
    Workload { peer: None, instances, ..curator(name, order, rows) }
}

const fn row(title: &'static str, key: &'static str, target: Target) -> Row {
    Row { title, key, target: Some(target) }
}

/// Returns a figure without a target.
pub(super) const fn untargeted(title: &'static str, key: &'static str) -> Row {
    Row { title, key, target: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_workload_has_its_own_name_and_a_figure() {
        let names: HashSet<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        assert_eq!(names.len(), WORKLOADS.len());
        assert!(WORKLOADS.iter().all(|workload| !workload.rows.is_empty()));
    }

    #[test]
    fn ratios_are_requested_only_with_a_peer() {
        let alone = WORKLOADS.iter().filter(|workload| workload.peer.is_none());
        let targets = alone.flat_map(|workload| workload.rows).filter_map(|row| row.target);
        assert!(targets.into_iter().all(|target| matches!(target, Absolute(_))));
    }
}
