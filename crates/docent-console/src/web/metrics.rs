use super::routes::Shared;
use crate::world::{FindingKind, Link};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use docent::inspect::{Kind, ServerState};
use http::StatusCode;
use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;

/// Ready once the tree was read and while the view is current.
pub(super) async fn ready(State(inner): Shared) -> Response {
    match inner.world.link().0 {
        Link::Current => "ok\n".into_response(),
        Link::Reading => (StatusCode::SERVICE_UNAVAILABLE, "reading the tree\n").into_response(),
        Link::ReadOnly | Link::Closed | Link::Stale(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the view is stale\n").into_response()
        }
    }
}

/// Numbers over all recipes, in the text format of Prometheus. No label has a path.
pub(super) async fn metrics(State(inner): Shared) -> Response {
    let totals = inner.world.totals();
    let mut text = Text(String::new());
    let is_current = u8::from(inner.world.link().0 == Link::Current);
    text.gauge("up_to_date", "1 while the view is current, 0 while it is stale", [("", is_current)]);
    let kinds = |counts: &std::collections::BTreeMap<Kind, usize>| -> Vec<(String, usize)> {
        counts.iter().map(|(kind, count)| (label("kind", kind.name()), *count)).collect()
    };
    text.gauge("recipes", "Recipes in use", kinds(&totals.recipes));
    text.gauge("holders", "Holders of locks, and leaders", kinds(&totals.holders));
    text.gauge("waiters", "Waiters for locks, and candidates", kinds(&totals.waiters));
    let oldest = totals.oldest_holder.iter();
    let oldest = oldest.map(|(kind, age)| (label("kind", kind.name()), age.as_secs_f64()));
    text.gauge("oldest_holder_seconds", "Age of the oldest holder or leader", oldest);
    text.gauge("queue_items", "Items in all queues", [("", totals.queue_items)]);
    text.gauge("queue_dead_letters", "Dead letters of all queues", [("", totals.dead_letters)]);
    text.gauge(
        "queue_head_seconds",
        "Age of the oldest item at the head of a queue",
        [("", totals.oldest_head.as_secs_f64())],
    );
    let states = ["enabled", "disabled", "unreadable"];
    let instances =
        states.map(|state| (label("state", state), totals.instances.get(state).copied().unwrap_or_default()));
    text.gauge("instances", "Instances of services", instances);
    let empty = totals.findings_of(FindingKind::NoInstances);
    text.gauge("services_without_instances", "Services without an enabled instance", [("", empty)]);
    text.counter("leader_changes_total", "New leaders of elections", totals.leader_changes);
    text.counter("changes_total", "Changes of recipes", totals.changes);
    let findings = FindingKind::ALL.map(|kind| (label("finding", kind.name()), totals.findings_of(kind)));
    text.gauge("findings", "What needs a look", findings);
    text.gauge("unreadable_nodes", "Nodes that the console may not read", [("", totals.refused)]);
    let servers = ServerState::ALL
        .map(|state| (label("state", state.name()), totals.servers.get(&state).copied().unwrap_or_default()));
    text.gauge("servers", "Servers of the ensemble", servers);
    text.gauge("streams", "Open pages", [("", inner.streams.load(Ordering::Relaxed))]);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text.0).into_response()
}

fn label(name: &str, value: &str) -> String {
    format!("{{{name}=\"{value}\"}}")
}

/// Metrics in the text format.
struct Text(String);

impl Text {
    fn gauge<L: Display, N: Display>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, N)>,
    ) {
        self.head(name, help, "gauge");
        for (label, number) in values {
            // Writing to a string cannot fail.
            let _ = writeln!(self.0, "docent_console_{name}{label} {number}");
        }
    }

    fn counter(&mut self, name: &str, help: &str, number: u64) {
        self.head(name, help, "counter");
        let _ = writeln!(self.0, "docent_console_{name} {number}");
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP docent_console_{name} {help}.\n# TYPE docent_console_{name} {kind}");
    }
}
