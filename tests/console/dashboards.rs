//! The dashboard and the alert rules, against the metrics of a running console.

use crate::site::Site;
use crate::world::watcher;
use docent_battery::Backend;
use docent_tests::soon;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PREFIX: &str = "docent_console_";

const DASHBOARD: &str = include_str!("../../docs/grafana/console.json");
const RULES: &str = include_str!("../../docs/prometheus/console-alerts.yml");
const RULES_TEST: &str = include_str!("../../docs/prometheus/console-alerts.test.yml");
const PAGE: &str = include_str!("../../docs/guide/console.md");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/prometheus")
}

/// Runs `promtool`, and panics with its output if it fails.
fn promtool(arguments: &[&str], folder: &Path) {
    let output = Command::new("promtool").args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run promtool ({error}): install prometheus"));
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}:\n{text}{errors}");
}

/// Names of the console's metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let starts = text.match_indices(PREFIX).map(|(start, _)| &text[start..]);
    starts.map(|rest| &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]).collect()
}

/// Returns the reply to a GET request.
async fn get(site: &Site, path: &str) -> String {
    let origin = site.origin();
    let host = origin.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    reply
}

/// Queries of all panels of the dashboard.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$instance", ".*")).collect()
}

#[tokio::test]
async fn dashboard_rules_and_guide_name_the_metrics_that_the_console_exports() {
    let server = Backend::Embedded.start().await;
    let site = Site::console(&watcher(&server).await, |builder| builder);
    let reply = soon(get(&site, "/metrics")).await;
    let types = reply.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let exported: BTreeSet<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    assert!(exported.len() > 10, "{reply}");
    for (file, text) in
        [("the dashboard", DASHBOARD), ("the rules", RULES), ("the test of the rules", RULES_TEST)]
    {
        let unknown: Vec<_> = names(text).difference(&exported).copied().collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    assert_eq!(names(PAGE), exported, "docs/guide/console.md lists the metrics");
    assert_eq!(names(DASHBOARD), exported, "the dashboard shows all metrics");
}

#[test]
fn each_alert_fires_in_the_test_of_the_rules() {
    let alerts: Vec<_> = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    let expectations: Vec<_> = RULES_TEST.split("alertname: ").skip(1).collect();
    for alert in alerts {
        let of_alert = expectations.iter().filter(|one| one.split(['\n', '}']).next() == Some(alert));
        let fires = of_alert
            .filter(|one| one.lines().nth(1).is_some_and(|line| line.trim() == "exp_alerts:"))
            .count();
        assert_eq!(fires, 1, "{alert}");
    }
}

#[test]
#[ignore = "needs Prometheus: run `cargo xtask test`"]
fn promtool_accepts_the_rules_and_their_test() {
    promtool(&["check", "rules", "console-alerts.yml"], &folder());
    promtool(&["test", "rules", "console-alerts.test.yml"], &folder());
}

#[test]
#[ignore = "needs Prometheus: run `cargo xtask test`"]
fn promtool_accepts_the_queries_of_the_dashboard() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (index, query) in queries(&dashboard).iter().enumerate() {
        writeln!(rules, "  - {{record: 'panel{index}', expr: {}}}", Value::from(query.as_str())).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rules.yml"), rules).unwrap();
    promtool(&["check", "rules", "rules.yml"], folder.path());
}
