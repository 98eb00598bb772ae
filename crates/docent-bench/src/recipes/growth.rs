//! Workloads that show how figures grow, and all figures of memory. They have no targets and are measured
//! once.

use super::workload::Workload;
use super::workloads::{KB, alone, discovery, untargeted};

pub(super) const GROWTH: &[Workload] = &[
    alone("line-10", "line waiters=10", 0, &[untargeted("line of 10 waiters, hand-offs, 1/s", "rate")]),
    alone("line-100", "line waiters=100", 0, &[untargeted("line of 100 waiters, hand-offs, 1/s", "rate")]),
    alone(
        "line-1000",
        "line waiters=1000",
        0,
        &[untargeted("line of 1,000 waiters, hand-offs, 1/s", "rate")],
    ),
    alone(
        "line-5000",
        "line waiters=5000",
        0,
        &[untargeted("line of 5,000 waiters, hand-offs, 1/s", "rate")],
    ),
    alone(
        "backlog-1000",
        "queue producers=1 consumers=1 backlog=1000",
        0,
        &[untargeted("queue, backlog of 1,000, 1/s", "rate")],
    ),
    alone(
        "backlog-10000",
        "queue producers=1 consumers=1 backlog=10000",
        0,
        &[untargeted("queue, backlog of 10,000, 1/s", "rate")],
    ),
    alone(
        "backlog-50000",
        "queue producers=1 consumers=1 backlog=50000",
        0,
        &[untargeted("queue, backlog of 50,000, 1/s", "rate")],
    ),
    alone(
        "simple-backlog-1000",
        "simple-queue backlog=1000",
        0,
        &[untargeted("SimpleQueue, backlog of 1,000, 1/s", "rate")],
    ),
    alone(
        "simple-backlog-10000",
        "simple-queue backlog=10000",
        0,
        &[untargeted("SimpleQueue, backlog of 10,000, 1/s", "rate")],
    ),
    alone(
        "simple-backlog-50000",
        "simple-queue backlog=50000",
        0,
        &[untargeted("SimpleQueue, backlog of 50,000, 1/s", "rate")],
    ),
    discovery(
        "view-grown-1000",
        "view instances=1000",
        1_000,
        &[untargeted("cold view of 1,000, p50 µs", "p50")],
    ),
    discovery(
        "view-grown-10000",
        "view instances=10000",
        10_000,
        &[untargeted("cold view of 10,000, p50 µs", "p50")],
    ),
    discovery(
        "change-grown-10000",
        "change",
        10_000,
        &[untargeted("change → seen, of 10,000, p50 µs", "p50")],
    ),
    discovery(
        "join-grown-1000",
        "join",
        1_000,
        &[
            untargeted("join → seen, of 1,000, p50 µs", "p50"),
            untargeted("leave → seen, of 1,000, p50 µs", "leave_p50"),
        ],
    ),
    discovery(
        "join-grown-5000",
        "join",
        5_000,
        &[
            untargeted("join → seen, of 5,000, p50 µs", "p50"),
            untargeted("leave → seen, of 5,000, p50 µs", "leave_p50"),
        ],
    ),
    discovery(
        "join-grown-10000",
        "join",
        10_000,
        &[
            untargeted("join → seen, of 10,000, p50 µs", "p50"),
            untargeted("leave → seen, of 10,000, p50 µs", "leave_p50"),
        ],
    ),
    alone("memory-guard", "memory-guard count=1000", 0, &[untargeted("memory of a guard, kB", KB)]),
    alone("memory-watch", "memory-watch count=1000", 0, &[untargeted("memory of a watch, kB", KB)]),
    alone(
        "memory-registration",
        "memory-registration count=1000",
        0,
        &[untargeted("memory of a registration, kB", KB)],
    ),
    alone(
        "memory-subscription",
        "memory-subscription count=1000",
        0,
        &[untargeted("memory of a subscription, kB", KB)],
    ),
];
