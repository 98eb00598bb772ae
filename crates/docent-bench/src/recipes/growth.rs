//! The workloads that show how figures grow, and the memory of all there is: without targets, once each.

use super::workload::Workload;
use super::workloads::{KB, curator, discovery, memory, told};

pub(super) const GROWTH: &[Workload] = &[
    line("line-10", "line waiters=10", &[told("line of 10 waiters, hand-offs, 1/s", "rate")]),
    line("line-100", "line waiters=100", &[told("line of 100 waiters, hand-offs, 1/s", "rate")]),
    line("line-1000", "line waiters=1000", &[told("line of 1,000 waiters, hand-offs, 1/s", "rate")]),
    line("line-5000", "line waiters=5000", &[told("line of 5,000 waiters, hand-offs, 1/s", "rate")]),
    line(
        "backlog-1000",
        "queue producers=1 consumers=1 backlog=1000",
        &[told("queue, backlog of 1,000, 1/s", "rate")],
    ),
    line(
        "backlog-10000",
        "queue producers=1 consumers=1 backlog=10000",
        &[told("queue, backlog of 10,000, 1/s", "rate")],
    ),
    line(
        "backlog-50000",
        "queue producers=1 consumers=1 backlog=50000",
        &[told("queue, backlog of 50,000, 1/s", "rate")],
    ),
    line(
        "simple-backlog-1000",
        "simple-queue backlog=1000",
        &[told("SimpleQueue, backlog of 1,000, 1/s", "rate")],
    ),
    line(
        "simple-backlog-10000",
        "simple-queue backlog=10000",
        &[told("SimpleQueue, backlog of 10,000, 1/s", "rate")],
    ),
    line(
        "simple-backlog-50000",
        "simple-queue backlog=50000",
        &[told("SimpleQueue, backlog of 50,000, 1/s", "rate")],
    ),
    discovery("view-grown-1000", "view instances=1000", 1_000, &[told("cold view of 1,000, p50 µs", "p50")]),
    discovery(
        "view-grown-10000",
        "view instances=10000",
        10_000,
        &[told("cold view of 10,000, p50 µs", "p50")],
    ),
    discovery("change-grown-10000", "change", 10_000, &[told("change → seen, of 10,000, p50 µs", "p50")]),
    discovery(
        "join-grown-1000",
        "join",
        1_000,
        &[told("join → seen, of 1,000, p50 µs", "p50"), told("leave → seen, of 1,000, p50 µs", "leave_p50")],
    ),
    discovery(
        "join-grown-5000",
        "join",
        5_000,
        &[told("join → seen, of 5,000, p50 µs", "p50"), told("leave → seen, of 5,000, p50 µs", "leave_p50")],
    ),
    discovery(
        "join-grown-10000",
        "join",
        10_000,
        &[
            told("join → seen, of 10,000, p50 µs", "p50"),
            told("leave → seen, of 10,000, p50 µs", "leave_p50"),
        ],
    ),
    memory("memory-guard", "memory-guard count=1000", 0, &[told("memory of a guard, kB", KB)]),
    memory("memory-watch", "memory-watch count=1000", 0, &[told("memory of a watch, kB", KB)]),
    memory(
        "memory-registration",
        "memory-registration count=1000",
        0,
        &[told("memory of a registration, kB", KB)],
    ),
    memory(
        "memory-subscription",
        "memory-subscription count=1000",
        0,
        &[told("memory of a subscription, kB", KB)],
    ),
];

/// Docent alone.
const fn line(name: &'static str, order: &'static str, rows: &'static [super::workload::Row]) -> Workload {
    Workload { theirs: None, ..curator(name, order, rows) }
}
