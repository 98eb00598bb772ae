use super::ServiceSide;
use super::percent::escape;
use super::url::{Url, is_true};
use crate::instance::{EncodedInstance, Instance, bracketed, read_weight};
use crate::texts::texts_of;
use docent_core::Error;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Dubbo's own scheme, for instances without one.
const SCHEME: &str = "dubbo";
/// Version of the protocol between Dubbo's providers and consumers.
pub(crate) const PROTOCOL_VERSION: &str = "2.0.2";
/// Parameter of a payload that holds the URL's scheme.
const PROTOCOL: &str = "protocol";

/// Encodes an instance as its URL.
pub(super) fn to_url(service: &str, side: ServiceSide, instance: &EncodedInstance) -> Result<String, Error> {
    let mut parameters = texts_of(instance, "in Dubbo's layout")?;
    let scheme = parameters.remove(PROTOCOL);
    let scheme = match side {
        ServiceSide::Consumer => "consumer".to_owned(),
        ServiceSide::Provider => scheme.unwrap_or_else(|| SCHEME.to_owned()),
    };
    let revision = parameters.get("version").map_or("1.0.0", String::as_str).to_owned();
    let common = [
        ("application", instance.name.as_str()),
        ("dubbo", PROTOCOL_VERSION),
        ("interface", service),
        ("methods", "*"),
        ("revision", &revision),
    ];
    let of_side = match side {
        ServiceSide::Provider => &[("category", "providers"), ("side", "provider")][..],
        ServiceSide::Consumer => &[("category", "consumers"), ("check", "false"), ("side", "consumer")],
    };
    for (name, value) in common.iter().chain(of_side) {
        parameters.entry((*name).to_owned()).or_insert_with(|| (*value).to_owned());
    }
    // The payload of an instance that was read holds the values from that time, so the fields override it.
    let fields = [
        ("id", Some(instance.id.clone())),
        ("timestamp", Some(instance.registered_at_ms.to_string())),
        ("weight", instance.weight.map(|weight| weight.to_string())),
        ("enabled", (!instance.enabled).then(|| "false".to_owned())),
        // Dubbo's other name for the same state.
        ("disabled", None),
    ];
    for (name, value) in fields {
        match value {
            Some(value) => drop(parameters.insert(name.to_owned(), value)),
            None => drop(parameters.remove(name)),
        }
    }
    let Some(address) = &instance.address else {
        return Err(Error::invalid_input("register", "an instance in Dubbo's layout must have an address"));
    };
    let host = bracketed(address);
    let authority = match instance.port.or(instance.ssl_port) {
        Some(port) => format!("{host}:{port}"),
        None => host.into_owned(),
    };
    let pair = |(name, value): (&String, &String)| format!("{}={}", escape(name), escape(value));
    let parameters: Vec<_> = parameters.iter().map(pair).collect();
    Ok(format!("{scheme}://{authority}/{service}?{}", parameters.join("&")))
}

/// Decodes an instance from its URL.
pub(super) fn from_url(url: &str) -> Result<EncodedInstance, String> {
    let url = Url::parse(url)?;
    let taken = |name: &str| url.parameters.get(name).cloned();
    // The SDK for Python writes no path, and `service` in place of `interface`.
    let name = taken("interface").or_else(|| taken("service")).unwrap_or_else(|| url.path.clone());
    let mut instance = Instance::named(name);
    instance.id = taken("id").unwrap_or_default();
    instance.registered_at_ms = taken("timestamp").and_then(|text| text.parse().ok()).unwrap_or(0);
    let is_disabled = taken("disabled").is_some_and(|text| is_true(&text));
    instance.enabled = !is_disabled && taken("enabled").is_none_or(|text| text != "false");
    instance.weight = taken("weight").and_then(|text| read_weight(&text));
    let Url { scheme, host, port, parameters, .. } = url;
    (instance.address, instance.port) = (host, port);
    let parameters = parameters.into_iter().chain([(PROTOCOL.to_owned(), scheme)]);
    let payload: Map<_, _> = parameters.map(|(name, value)| (name, Value::String(value))).collect();
    Ok(instance.with_payload(RawValue::from_string(Value::Object(payload).to_string()).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(payload: &str) -> EncodedInstance {
        let mut instance = Instance::new("orders", "10.0.0.7", 20880).id("i1");
        instance.registered_at_ms = 5;
        instance.with_payload(Some(RawValue::from_string(payload.to_owned()).unwrap()))
    }

    #[test]
    fn an_instance_is_a_url_and_back() {
        let given =
            instance(r#"{"version":"1.0","retries":2,"group":null,"note":"a b&c"}"#).weight(3).enabled(false);
        let url = to_url("com.shop.Orders", ServiceSide::Provider, &given).unwrap();
        assert_eq!(
            url,
            "dubbo://10.0.0.7:20880/com.shop.Orders?application=orders&category=providers&dubbo=2.0.2&enabled=false&id=i1&interface=com.shop.Orders&methods=*&note=a b%26c&retries=2&revision=1.0&side=provider&timestamp=5&version=1.0&weight=3"
        );
        let read = from_url(&url).unwrap();
        assert_eq!((read.name.as_str(), read.id.as_str(), read.enabled), ("com.shop.Orders", "i1", false));
        assert_eq!(
            (read.address.as_deref(), read.port, read.weight),
            (Some("10.0.0.7"), Some(20880), Some(3))
        );
        let payload: Value = serde_json::from_str(read.payload.as_ref().unwrap().get()).unwrap();
        assert_eq!(
            (&payload["note"], &payload["retries"], &payload["protocol"]),
            (&"a b&c".into(), &"2".into(), &"dubbo".into())
        );
        // An instance that was read is written as the same URL.
        assert_eq!(to_url("com.shop.Orders", ServiceSide::Provider, &read).unwrap(), url);
        let consumer = to_url("com.shop.Orders", ServiceSide::Consumer, &instance("{}")).unwrap();
        assert!(
            consumer.starts_with(
                "consumer://10.0.0.7:20880/com.shop.Orders?application=orders&category=consumers&check=false&"
            ),
            "{consumer}"
        );
    }

    #[test]
    fn instances_written_by_dubbo_are_readable() {
        let url = "tri://me:pw@[::1]:50051/com.shop.Orders?anyhost=true&application=shop&weight=100";
        let read = from_url(url).unwrap();
        assert_eq!((read.address.as_deref(), read.port, read.weight), (Some("::1"), Some(50051), Some(100)));
        assert_eq!((read.name.as_str(), read.id.as_str(), read.enabled), ("com.shop.Orders", "", true));
        let consumer = from_url("consumer://10.0.0.9/com.shop.Orders?side=consumer").unwrap();
        assert_eq!((consumer.address.as_deref(), consumer.port), (Some("10.0.0.9"), None));
        let python = from_url("tri://127.0.0.1:36577?service=org.apache.Greeter&note=a b").unwrap();
        assert_eq!((python.name.as_str(), python.port), ("org.apache.Greeter", Some(36577)));
        for (bad, why) in [("orders", "not a URL"), ("dubbo://h:70000/x", "port must be")] {
            assert!(from_url(bad).unwrap_err().contains(why), "{bad}");
        }
    }

    #[test]
    fn a_consumer_has_what_lists_of_consumers_read_and_needs_no_port() {
        for (address, authority) in [("10.0.0.9", "10.0.0.9"), ("::1", "[::1]")] {
            let mut consumer = instance(r#"{"group":"g","version":"1.0"}"#);
            (consumer.address, consumer.port) = (Some(address.to_owned()), None);
            let text = to_url("com.shop.Orders", ServiceSide::Consumer, &consumer).unwrap();
            let url = Url::parse(&text).unwrap();
            assert!(text.starts_with(&format!("consumer://{authority}/com.shop.Orders?")), "{text}");
            assert_eq!((url.host.as_deref(), url.port), (Some(address), None));
            for (name, value) in [
                ("application", "orders"),
                ("category", "consumers"),
                ("check", "false"),
                ("group", "g"),
                ("interface", "com.shop.Orders"),
                ("side", "consumer"),
                ("timestamp", "5"),
                ("version", "1.0"),
            ] {
                assert_eq!(url.parameter(name), Some(value), "{text}");
            }
        }
    }

    #[test]
    fn both_of_dubbos_names_for_a_disabled_provider_are_read() {
        let url = "dubbo://10.0.0.7:20880/orders?disabled=true";
        let read = from_url(url).unwrap();
        assert!(!read.enabled);
        let written = to_url("orders", ServiceSide::Provider, &read.enabled(true)).unwrap();
        assert!(from_url(&written).unwrap().enabled, "{written}");
    }

    #[test]
    fn a_payload_that_is_no_set_of_parameters_is_refused() {
        for payload in ["[1]", "\"a\"", r#"{"a":{"b":1}}"#] {
            let error = to_url("orders", ServiceSide::Provider, &instance(payload)).unwrap_err().to_string();
            assert!(error.contains("must be an object of texts"), "{error}");
        }
    }

    #[test]
    fn fields_of_an_instance_override_parameters_of_the_same_name() {
        let url = "dubbo://10.0.0.7:20880/orders?enabled=false&id=theirs&weight=5";
        let mut read = from_url(url).unwrap().enabled(true).id("mine");
        read.weight = None;
        let read = from_url(&to_url("orders", ServiceSide::Provider, &read).unwrap()).unwrap();
        assert_eq!((read.enabled, read.id.as_str(), read.weight), (true, "mine", None));
    }
}
