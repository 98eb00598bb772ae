//! The page that lists all metrics agrees with the code.

use docent::{Client, Config, Election, Instance, Mutex, Queue, Registry};
use metrics_util::MetricKind;
use metrics_util::debugging::DebuggingRecorder;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../docs/guide/observability.md");

/// Type, unit, labels and meaning of each metric, by its name.
type Metrics = BTreeMap<String, [String; 4]>;

/// Returns the metrics in the page's table. Each must have an alert or a reason why there is none.
fn listed() -> Metrics {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `docent_"));
    let rows = rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        let [name, kind, unit, labels, meaning, alert, end] = &cells[..] else {
            panic!("a row must have six cells: {row}");
        };
        assert!(end.is_empty() && !alert.is_empty(), "{row}");
        let name = format!("docent_{}", name.trim_end_matches('`'));
        (name, [kind, unit, labels, meaning].map(Clone::clone))
    });
    rows.collect()
}

/// Creates one handle of each kind, before any server exists.
fn every_handle(client: &Client) {
    Mutex::new(client, "/m").unwrap();
    Election::builder(client, "/e").metrics_name("e").build().unwrap();
    Queue::<u64>::builder(client, "/q").metrics_name("q").build().unwrap();
    Config::<u64>::builder(client, "/c").metrics_name("c").build().unwrap();
    let registry = Registry::new(client, "/r").unwrap();
    drop(registry.announce(Instance::new("web", "10.0.0.1", 80)).unwrap());
    drop(registry.service_builder::<()>("web").start().unwrap());
}

/// Returns the metrics that exist from the start.
fn described() -> Metrics {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { every_handle(&Client::builder("127.0.0.1:1").build().unwrap()) });
    });
    let all = snapshotter.snapshot().into_vec().into_iter().map(|(key, unit, help, _)| {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels: Vec<_> = key.key().labels().map(|label| format!("`{}`", label.key())).collect();
        let unit = unit.map_or("", |unit| unit.as_str());
        let help = help.map(|help| help.to_string()).unwrap_or_default();
        (key.key().name().to_owned(), [kind.to_owned(), unit.to_owned(), labels.join(", "), help])
    });
    all.collect()
}

#[test]
fn the_page_lists_exactly_the_metrics_that_the_code_has() {
    let (listed, described) = (listed(), described());
    let row = |(name, cells): (&String, &[String; 4])| format!("| `{name}` | {} |", cells.join(" | "));
    let rows = |metrics: &Metrics| metrics.iter().map(row).collect::<Vec<_>>().join("\n");
    assert_eq!(rows(&listed), rows(&described));
}
