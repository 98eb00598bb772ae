//! The manifest in the guide to Kubernetes: it is well formed, its times fit together, and its settings are
//! valid.

use docent::Options;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../docs/guide/kubernetes.md");

/// Scalars of a YAML document by their path. Reads block mappings, block sequences and plain scalars only.
fn scalars(document: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    // Indentation and name of each enclosing key, and of the current item of each sequence.
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut items = 0;
    for line in document.lines() {
        assert!(!line.contains('\t') && line.trim_end() == line, "white space in {line:?}");
        let mut text = line.trim_start();
        let mut indent = line.len() - text.len();
        assert!(indent.is_multiple_of(2), "odd indentation in {line:?}");
        open.retain(|(outer, _)| *outer < indent);
        if let Some(item) = text.strip_prefix("- ") {
            items += 1;
            open.push((indent, items.to_string()));
            (text, indent) = (item, indent + 2);
        }
        let (key, value) = text.split_once(':').unwrap_or_else(|| panic!("no key in {line:?}"));
        open.push((indent, key.to_owned()));
        if let Some(value) = value.strip_prefix(' ') {
            let path: Vec<_> = open.iter().map(|(_, name)| name.as_str()).collect();
            assert!(
                found.insert(path.join("."), value.to_owned()).is_none(),
                "{} appears twice",
                path.join(".")
            );
        } else {
            assert!(value.is_empty(), "no space after the colon in {line:?}");
        }
    }
    found
}

/// The documents of the page's only YAML block.
fn documents() -> Vec<BTreeMap<String, String>> {
    let (_, block) = PAGE.split_once("```yaml\n").expect("the page has a manifest");
    let (block, rest) = block.split_once("```").expect("the block ends");
    assert!(!rest.contains("```yaml"), "another manifest that no test reads");
    block.split("---\n").map(scalars).collect()
}

fn seconds(document: &BTreeMap<String, String>, end: &str) -> u64 {
    let (_, value) = document.iter().find(|(path, _)| path.ends_with(end)).expect(end);
    value.parse().expect(end)
}

#[test]
fn the_times_of_the_manifest_leave_room_for_a_shutdown() {
    let deployment = &documents()[0];
    let left =
        seconds(deployment, "terminationGracePeriodSeconds") - seconds(deployment, "preStop.sleep.seconds");
    let (_, deadline) = PAGE.split_once("client.shutdown(").expect("the page has a deadline");
    let deadline: u64 = deadline.split_once(" s)").expect("in seconds").0.parse().expect("a number");
    assert!(deadline < left, "a shutdown of {deadline} s in the {left} s after preStop");
}

#[test]
fn the_settings_of_the_manifest_are_valid() {
    let deployment = &documents()[0];
    let settings: Vec<_> = deployment
        .iter()
        .filter(|(path, name)| path.ends_with(".name") && name.starts_with("DOCENT_"))
        .map(|(path, name)| (name, &deployment[&path.replace(".name", ".value")]))
        .collect();
    assert_eq!(settings.len(), 3);
    let _ = Options::from_vars(settings).expect("known fields").builder().expect("valid values");
}

#[test]
fn the_selectors_of_the_manifest_choose_its_pods() {
    let documents = documents();
    let labels: Vec<_> = documents
        .iter()
        .flat_map(|document| document.iter().filter(|(path, _)| path.ends_with(".app")))
        .map(|(_, label)| label.as_str())
        .collect();
    assert_eq!(labels, ["orders"; 3]);
    assert_eq!(documents[1]["kind"], "PodDisruptionBudget");
}
