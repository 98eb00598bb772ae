//! Metadata of Dubbo 3's application-level discovery.

use crate::instance::{EncodedInstance, check_segment};
use crate::layout::PROTOCOL_VERSION;
use crate::texts::Texts;
use docent_core::Error;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const INTERFACES: &str = "interfaces";
const ENDPOINTS: &str = "dubbo.endpoints";
const REVISION: &str = "dubbo.metadata.revision";
const STORAGE: &str = "dubbo.metadata.storage-type";
const TIMESTAMP: &str = "timestamp";

/// Keys of `metadata` that Docent adds.
pub(super) const KEYS: [&str; 4] = [ENDPOINTS, REVISION, STORAGE, TIMESTAMP];

/// Protocol of instances that name none: gRPC's wire format, which Dubbo calls Triple.
const TRIPLE: &str = "tri";

#[derive(Serialize, Deserialize)]
struct Endpoint {
    port: u16,
    protocol: String,
}

/// Description of an application's interfaces, as Dubbo stores it.
#[derive(Serialize)]
struct Application<'a> {
    app: &'a str,
    revision: &'a str,
    services: &'a BTreeMap<String, Interface>,
}

#[derive(Serialize)]
struct Interface {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    protocol: String,
    port: u16,
    path: String,
    params: Texts,
}

/// Adds Dubbo's keys to the metadata of an instance.
///
/// # Errors
/// `InvalidInput` if the instance has no port, or no valid interfaces.
pub(super) fn describe(instance: &EncodedInstance, metadata: &mut Texts) -> Result<(), Error> {
    KEYS.iter().for_each(|key| drop(metadata.remove(*key)));
    let Some(port) = instance.port.or(instance.ssl_port) else {
        return Err(Error::invalid_input("register", "an instance for Dubbo must have a port"));
    };
    let interfaces = interfaces(metadata);
    if interfaces.is_empty() {
        let detail = "a payload for Dubbo must name the instance's interfaces in its field \"interfaces\"";
        return Err(Error::invalid_input("register", detail));
    }
    interfaces.iter().try_for_each(|name| check_segment("interface", name))?;
    let protocol = metadata.get("protocol").map_or(TRIPLE, String::as_str).to_owned();
    let revision = revision(&instance.name, &services(metadata, &protocol, port));
    let endpoints = serde_json::to_string(&[Endpoint { port, protocol }]).expect("texts are JSON");
    for (key, value) in [
        (ENDPOINTS, endpoints),
        (REVISION, revision),
        (STORAGE, "remote".to_owned()),
        (TIMESTAMP, instance.registered_at_ms.to_string()),
    ] {
        metadata.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Returns the names of the interfaces in the metadata of an instance.
pub(super) fn interfaces(metadata: &Texts) -> Vec<String> {
    let names = metadata.get(INTERFACES).map_or("", String::as_str).split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the revision and the description of the interfaces in the metadata of an instance that was
/// [described](describe).
pub(super) fn description(app: &str, metadata: &Texts) -> Option<(String, String)> {
    let revision = metadata.get(REVISION)?;
    let [Endpoint { port, protocol }] = serde_json::from_str(metadata.get(ENDPOINTS)?).ok()?;
    let services = &services(metadata, &protocol, port);
    let application = serde_json::to_string(&Application { app, revision, services }).ok()?;
    Some((revision.clone(), application))
}

fn services(metadata: &Texts, protocol: &str, port: u16) -> BTreeMap<String, Interface> {
    let services = interfaces(metadata).into_iter().map(|name| {
        let (group, version) = (metadata.get("group").cloned(), metadata.get("version").cloned());
        let prefix = group.as_ref().map_or_else(String::new, |group| format!("{group}/"));
        let suffix = version.as_ref().map_or_else(String::new, |version| format!(":{version}"));
        let key = format!("{prefix}{name}{suffix}:{protocol}");
        let params = params(metadata, &name);
        let (path, protocol) = (name.clone(), protocol.to_owned());
        (key, Interface { name, group, version, protocol, port, path, params })
    });
    services.collect()
}

/// Returns the parameters of an interface: the fields of the payload without another place in the
/// description.
fn params(metadata: &Texts, interface: &str) -> Texts {
    let has_place = |key: &str| {
        key == INTERFACES || key == "protocol" || key == super::class::STATUS || KEYS.contains(&key)
    };
    let own = metadata.iter().filter(|(key, _)| !has_place(key));
    let mut params: Texts = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in [("interface", interface), ("side", "provider"), ("dubbo", PROTOCOL_VERSION)] {
        params.insert(key.to_owned(), value.to_owned());
    }
    params
}

/// Returns 32 hexadecimal digits that are the same for equal descriptions. Dubbo uses the same hash of its
/// own form of a description, and only compares revisions.
fn revision(app: &str, services: &BTreeMap<String, Interface>) -> String {
    let text = serde_json::to_string(&(app, services)).expect("texts are JSON");
    let hash = u128::from_be_bytes(Md5::digest(text).into());
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instance;
    use serde_json::{Value, json};

    fn metadata(fields: &[(&str, &str)]) -> Texts {
        fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_description_is_what_dubbo_stores_for_the_revision_in_the_metadata() {
        let instance = Instance::new("shop", "10.0.0.7", 50051).with_payload(None);
        let mut texts =
            metadata(&[("interfaces", "com.shop.Orders, com.shop.Carts"), ("version", "1.0"), ("zone", "a")]);
        describe(&instance, &mut texts).unwrap();
        assert_eq!(texts["dubbo.endpoints"], r#"[{"port":50051,"protocol":"tri"}]"#);
        assert_eq!(texts["dubbo.metadata.storage-type"], "remote");
        let (revision, text) = description("shop", &texts).unwrap();
        assert_eq!((revision.len(), &revision), (32, &texts["dubbo.metadata.revision"]));
        let stored: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&stored["app"], &stored["revision"]), (&json!("shop"), &json!(revision)));
        assert_eq!(
            stored["services"]["com.shop.Orders:1.0:tri"],
            json!({
                "name": "com.shop.Orders", "version": "1.0", "protocol": "tri", "port": 50051, "path": "com.shop.Orders",
                "params": { "dubbo": "2.0.2", "interface": "com.shop.Orders", "side": "provider", "version": "1.0", "zone": "a" }
            })
        );
        assert!(stored["services"]["com.shop.Carts:1.0:tri"].is_object());
    }

    #[test]
    fn the_revision_depends_on_the_interfaces_and_not_on_the_state_or_the_time() {
        let revision = |interfaces: &str, status: &str, at| {
            let mut instance = Instance::new("shop", "10.0.0.7", 50051).with_payload(None);
            instance.registered_at_ms = at;
            let mut texts = metadata(&[("interfaces", interfaces), ("instance_status", status)]);
            describe(&instance, &mut texts).unwrap();
            texts.remove(REVISION).unwrap()
        };
        assert_eq!(revision("a.B", "UP", 1), revision("a.B", "OUT_OF_SERVICE", 2));
        assert_ne!(revision("a.B", "UP", 1), revision("a.C", "UP", 1));
    }

    #[test]
    fn an_instance_without_interfaces_or_port_is_refused() {
        let with_port = Instance::new("shop", "10.0.0.7", 1).with_payload(None);
        let without = Instance::named("shop").with_payload(None);
        for (instance, interfaces, rule) in [
            (&with_port, "", "must name the instance's interfaces"),
            (&with_port, "a.B,x/y", "interface \"x/y\" must not contain '/'"),
            (&without, "a.B", "must have a port"),
        ] {
            let error =
                describe(instance, &mut metadata(&[("interfaces", interfaces)])).unwrap_err().to_string();
            assert!(error.contains(rule), "{error}");
        }
    }
}
