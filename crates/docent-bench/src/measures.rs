//! The measured figures of each client, with their targets.

use crate::clients::Which;

/// A figure of a client.
#[derive(Debug)]
pub(crate) struct Measure {
    /// Key of the figure in the output of a worker.
    pub(crate) key: &'static str,
    pub(crate) title: &'static str,
    pub(crate) target: Option<Target>,
}

/// Upper bound of Docent's figure, as a share of another client's figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) of: Which,
    pub(crate) ratio: f64,
}

const LATENCY: Option<Target> = Some(Target { of: Which::Bare, ratio: 1.15 });
const CPU_ALONE: Option<Target> = Some(Target { of: Which::ZookeeperClient, ratio: 0.6 });
const CPU_IN_FLIGHT: Option<Target> = Some(Target { of: Which::ZookeeperClient, ratio: 0.5 });

/// All figures, in the order of the report.
pub(crate) const MEASURES: &[Measure] = &[
    measure("get_p50", "get, p50 µs", LATENCY),
    measure("get_p99", "get, p99 µs", None),
    measure("create_p50", "create, p50 µs", LATENCY),
    measure("create_p99", "create, p99 µs", None),
    measure("delete_p50", "delete, p50 µs", LATENCY),
    measure("delete_p99", "delete, p99 µs", None),
    measure("pair_p50", "create + list, p50 µs", LATENCY),
    measure("pair_p99", "create + list, p99 µs", None),
    measure("far_get_p50", "get, 5 ms link, p50 µs", None),
    measure("far_pair_p50", "create + list, 5 ms link, p50 µs", LATENCY),
    measure("get_rate", "get, 256 in flight, 1/s", None),
    measure("create_rate", "create, 256 in flight, 1/s", None),
    measure("get_cpu", "get, CPU µs", CPU_ALONE),
    measure("create_cpu", "create, CPU µs", CPU_ALONE),
    measure("get_many_cpu", "get, 256 in flight, CPU µs", CPU_IN_FLIGHT),
    measure("create_many_cpu", "create, 256 in flight, CPU µs", CPU_IN_FLIGHT),
];

const fn measure(key: &'static str, title: &'static str, target: Option<Target>) -> Measure {
    Measure { key, title, target }
}
