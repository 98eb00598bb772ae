//! Targets in the form of Prometheus' `file_sd_configs`: a JSON list of groups with labels.

use super::endpoint::Endpoint;
use docent::discovery::Instance;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const PAYLOAD: &str = "__meta_docent_payload_";

/// A target with its labels.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    targets: [String; 1],
    labels: BTreeMap<String, String>,
}

impl Group {
    /// Creates the group of one instance. `id` is the name of its node.
    pub(super) fn new(service: &str, id: &str, endpoint: &Endpoint, instance: &Instance<Value>) -> Self {
        let mut labels = instance.payload.as_ref().map(payload_labels).unwrap_or_default();
        let own = [("service", service), ("id", id), ("scheme", instance.scheme())];
        labels.extend(own.map(|(name, value)| (format!("__meta_docent_{name}"), value.to_owned())));
        Self { targets: [format!("{}:{}", endpoint.host, endpoint.port)], labels }
    }
}

/// Returns a label for each text, number and boolean in the payload. If two names become the same label, the
/// first in the order of names is taken.
fn payload_labels(payload: &Value) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(fields) = fields(payload) else { return labels };
    let sorted: BTreeMap<_, _> = fields.iter().filter(|(name, _)| *name != "@class").collect();
    for (name, value) in sorted {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => continue,
        };
        labels.entry(label(name)).or_insert(text);
    }
    labels
}

/// Returns the members of the payload. The classes of Spring Cloud and Dubbo have the texts of their users in
/// `metadata`.
fn fields(payload: &Value) -> Option<&Map<String, Value>> {
    let fields = payload.as_object()?;
    let metadata = fields.get("metadata").and_then(Value::as_object);
    Some(metadata.filter(|_| fields.contains_key("@class")).unwrap_or(fields))
}

/// Returns the label of a member. In names of labels, only ASCII letters, digits and `_` are allowed.
fn label(name: &str) -> String {
    let allowed = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    PAYLOAD.chars().chain(name.chars().map(allowed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn group(payload: Value) -> Value {
        let instance = Instance::new("orders", "::1", 80).payload(payload);
        let endpoint = Endpoint::of(&instance).unwrap().unwrap();
        serde_json::to_value(Group::new("orders", "one", &endpoint, &instance)).unwrap()
    }

    #[test]
    fn a_group_has_the_target_and_labels_of_the_instance() {
        let payload = json!({"zone": "a", "cores": 4, "spot": true, "none": null, "list": [1], "map": {}});
        let labels = json!({
            "__meta_docent_service": "orders",
            "__meta_docent_id": "one",
            "__meta_docent_scheme": "http",
            "__meta_docent_payload_zone": "a",
            "__meta_docent_payload_cores": "4",
            "__meta_docent_payload_spot": "true",
        });
        assert_eq!(group(payload), json!({"targets": ["[::1]:80"], "labels": labels}));
        assert_eq!(group(json!("text"))["labels"].as_object().unwrap().len(), 3);
    }

    #[test]
    fn names_become_labels_and_the_first_of_equal_ones_is_taken() {
        let labels = payload_labels(&json!({"a_b": "third", "a.b": "second", "a-b": "first", "1ü": "x"}));
        let wanted = [("__meta_docent_payload_1_", "x"), ("__meta_docent_payload_a_b", "first")];
        assert_eq!(labels, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn the_metadata_of_java_classes_are_the_members() {
        let names = |payload| payload_labels(&payload).into_values().collect::<Vec<_>>();
        assert_eq!(
            names(json!({"@class": "a.ZookeeperInstance", "id": "1", "metadata": {"zone": "a"}})),
            ["a"]
        );
        assert_eq!(names(json!({"@class": "java.util.HashMap", "zone": "b"})), ["b"]);
        assert_eq!(names(json!({"zone": "c", "metadata": {"zone": "d"}})), ["c"]);
    }
}
