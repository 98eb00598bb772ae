//! The rules of the guide's page about JSON, for the output of all verbs.

use crate::docent_command::{Ended, Running, run, servers};
use docent::discovery::{Instance, Registry};
use docent::{Client, Election, Mutex, Queue};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const JSON: &str = include_str!("../../../../docs/guide/json.md");

/// Types of the fields that several verbs have.
const SHARED: [(&str, &str); 22] = [
    ("path", "string"),
    ("kind", "string"),
    ("name", "string"),
    ("node", "string"),
    ("state", "string"),
    ("service", "string"),
    ("session", "string"),
    ("server", "string"),
    ("reason", "string"),
    ("detail", "string"),
    ("item", "string"),
    ("owner", "string"),
    ("version", "number or string"),
    ("old_version", "number"),
    ("mzxid", "number"),
    ("depth", "number"),
    ("deliveries", "number"),
    ("port", "number"),
    ("weight", "number"),
    ("deleted", "boolean"),
    ("value", "string or bytes"),
    ("old_value", "string or bytes"),
];

/// Checks an object and those in it, and collects the names of the fields.
fn check(value: &Value, at: &str, fields: &mut BTreeMap<String, Vec<String>>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| check(one, at, fields)),
        Value::Object(object) => {
            for (name, value) in object {
                let place = format!("{at}.{name}");
                let is_snake = name.chars().all(|char| matches!(char, 'a'..='z' | '0'..='9' | '_'));
                assert!(is_snake, "{place} is not in snake_case");
                assert!(name != "since" && !name.ends_with("_at"), "{place} is a time without a unit");
                let is_bytes =
                    || value.as_object().is_some_and(|one| one.len() == 1 && one["hex"].is_string());
                let type_of =
                    SHARED.iter().find(|(known, _)| known == name).map_or("any", |(_, type_of)| type_of);
                let fits = value.is_null()
                    || match type_of {
                        "string" => value.is_string(),
                        "number" => value.is_number(),
                        "number or string" => value.is_number() || value.is_string(),
                        "boolean" => value.is_boolean(),
                        "string or bytes" => value.is_string() || is_bytes(),
                        _ => true,
                    };
                assert!(fits, "{place} must be a {type_of}: {value}");
                if name.ends_with("_ms") {
                    assert!(value.is_null() || value.is_number(), "{place} must be a number: {value}");
                }
                if name == "session" {
                    assert!(value.as_str().is_none_or(|text| text.starts_with("0x")), "{place}: {value}");
                }
                fields.entry(name.clone()).or_default().push(place.clone());
                // The payload of an instance has the fields that its service chose.
                if name != "json" {
                    check(value, &place, fields);
                }
            }
        }
        _ => {}
    }
}

both_backends_in_real_time! {
    async fn all_verbs_follow_the_same_rules(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let guard = Mutex::new(&client, "/locks/a").unwrap().acquire().await.unwrap();
        let _leader = Election::new(&client, "/election").unwrap().campaign().await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let one = Instance::new("orders", "10.0.0.7", 8080).id("one").weight(3).payload(json!({"Zone": "a"}));
        let _one = registry.register(one).await.unwrap();
        let jobs = Queue::<bytes::Bytes>::builder_with(&client, "/jobs", docent::config::Raw).build().unwrap();
        jobs.put(&bytes::Bytes::from_static(b"\xff\0")).await.unwrap();
        jobs.take().await.unwrap().reject("no good").await.unwrap();
        run(&connect, ["config", "set", "/config/a", "0"]).await.ok();
        let mut watch = Running::start(&connect, ["config", "watch", "/config/a", "--diff", "-o", "json"]);
        watch.remarks().until("following /config/a").await;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, r#"{"path":"/config/b","value":{"hex":"ff00"}}"#).unwrap();
        let file = file.path().to_str().unwrap();

        let mut fields = BTreeMap::new();
        let verbs: [(&[&str], usize); 24] = [
            (&["config", "set", "/config/a", "1"], 1),
            (&["config", "import", file], 1),
            (&["config", "get", "/config/b"], 1),
            (&["config", "history", "/config/a"], 2),
            (&["config", "ls", "/config"], 2),
            (&["config", "export", "/config"], 2),
            (&["config", "rollback", "/config/a"], 1),
            (&["queue", "dead", "/jobs"], 1),
            (&["queue", "put", "/jobs", "x"], 1),
            (&["queue", "len", "/jobs"], 1),
            (&["queue", "peek", "/jobs"], 1),
            (&["inspect", "/jobs"], 1),
            (&["queue", "take", "/jobs"], 1),
            (&["queue", "requeue", "/jobs", "--all"], 1),
            (&["discover"], 1),
            (&["discover", "orders"], 1),
            (&["inspect", "/services/orders"], 1),
            (&["inspect", "/locks/a"], 1),
            (&["ls"], 6),
            (&["sessions"], 1),
            (&["wait", "/services/orders", "--for", "instances=1"], 1),
            (&["ensemble"], 1),
            (&["doctor", "--clock", "0"], 5),
            (&["config", "delete", "/config/b", "--yes"], 1),
        ];
        for (verb, least) in verbs {
            let ended = run(&connect, verb.iter().chain(&["-o", "json"])).await.ok();
            let lines = ended.json();
            assert!(lines.len() >= least, "{verb:?}: {ended:?}");
            lines.iter().for_each(|line| check(line, &verb.join(" "), &mut fields));
        }
        let change: Value = serde_json::from_str(&watch.line().await).unwrap();
        check(&change, "config watch", &mut fields);
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        for verb in [&["revoke", "/locks/a"][..], &["break", "/locks/a", "--yes"]] {
            let ended = run(&connect, verb.iter().chain(&["-o", "json"])).await.ok();
            ended.json().iter().for_each(|line| check(line, &verb.join(" "), &mut fields));
        }
        for (name, _) in SHARED.iter().filter(|(name, _)| JSON.contains(&format!("`{name}`"))) {
            assert!(fields.contains_key(*name), "the guide describes {name}, which no verb has: {:?}", fields.keys());
        }
        drop(guard);
        client.close().await;
    }

    async fn verbs_that_show_the_same_thing_have_the_same_fields(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let one = Instance::new("orders", "10.0.0.7", 8080).id("one").weight(3).payload(json!({"zone": "a"}));
        let _one = registry.register(one).await.unwrap();
        let jobs = Queue::<u32>::new(&client, "/jobs").unwrap();
        jobs.put(&7).await.unwrap();
        jobs.take().await.unwrap().reject("no good").await.unwrap();
        let json = async |verb: &[&str]| {
            let ended: Ended = run(&connect, verb.iter().chain(&["-o", "json"])).await.ok();
            ended.json()[0].clone()
        };
        let same = |one: &Value, other: &Value, fields: &[&str]| {
            for field in fields {
                assert!(!one[field].is_null(), "{field} is missing in {one}");
                assert_eq!(one[field], other[field], "{field} of {one} and {other}");
            }
        };
        let (listed, report) = (json(&["queue", "dead", "/jobs"]).await, json(&["inspect", "/jobs"]).await);
        let wide = run(&connect, ["queue", "dead", "/jobs", "-o", "wide"]).await.ok().stdout;
        assert!(wide.starts_with("NAME") && wide.contains(listed["item"].as_str().unwrap()), "{wide}");
        same(&listed, &report["dead_letters"][0], &["name", "item", "since_ms", "reason", "detail", "deliveries"]);
        assert_eq!((&listed["path"], &listed["value"], &report["path"]), (&json!("/jobs"), &json!("7"), &json!("/jobs")));
        let (listed, report) = (json(&["discover", "orders"]).await, json(&["inspect", "/services/orders"]).await);
        let fields = ["node", "state", "id", "address", "port", "weight", "service_type", "registered_at_ms", "payload"];
        same(&listed, &report["instances"][0], &fields);
        assert_eq!((&listed["path"], &listed["ssl_port"]), (&report["path"], &Value::Null));
        run(&connect, ["config", "set", "/config/a", "one"]).await.ok();
        let (value, report) = (json(&["config", "get", "/config/a"]).await, json(&["config", "ls", "/config"]).await);
        assert_eq!(value, report);
        client.close().await;
    }

    async fn yaml_has_the_fields_of_json(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        run(&connect, ["config", "set", "/config/a", "one\ntwo\n"]).await.ok();
        run(&connect, ["config", "set", "/config/b", "\u{1b}[2J\u{202e}"]).await.ok();
        let list = async |format| run(&connect, ["config", "ls", "/config", "-o", format]).await.ok();
        let (yaml, json) = (list("yaml").await, list("json").await);
        assert!(!yaml.stdout.contains(['\u{1b}', '\u{202e}']), "{yaml:?}");
        let documents = yaml.stdout.split("---\n").skip(1);
        let documents: Vec<Value> = documents.map(|text| serde_norway::from_str(text).unwrap()).collect();
        assert_eq!(documents, json.json());
    }
}
