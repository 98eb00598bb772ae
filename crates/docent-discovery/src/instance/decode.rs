use super::encode::{DEEPEST, EncodedInstance};
use super::{Instance, ServiceType, read_weight};
use docent_codec::Json;
use docent_core::recipe::Shown;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// Decodes an instance as written by any version of Curator: missing keys have their defaults, numbers may be
/// text, unknown keys are kept.
///
/// # Errors
/// What is wrong with the data, without any of its values.
pub(crate) fn decode(data: &[u8]) -> Result<EncodedInstance, String> {
    if data.is_empty() {
        return Err("there is no data".to_owned());
    }
    // One level more, for the instance itself.
    let nesting = Json::new().max_nesting(DEEPEST + 1).check_nesting(data);
    nesting.map_err(|_| format!("the data nests deeper than {DEEPEST} lists and objects"))?;
    serde_json::from_slice(data).map_err(|error| describe(&error))
}

/// Reads from data that another client wrote for the wanted instance whether it is to be disabled. Returns
/// `None` if the data is not that instance.
pub(crate) fn read_choice(found: &[u8], wanted: &[u8]) -> Option<Shown> {
    let (found, wanted) = (decode(found).ok()?, decode(wanted).ok()?);
    let is_same = (found.name, found.id) == (wanted.name, wanted.id);
    is_same.then_some(if found.enabled { Shown::Data } else { Shown::FinalData })
}

/// Describes serde's error without values from the data.
pub(super) fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!("at line {} column {}", error.line(), error.column());
    match error.classify() {
        serde_json::error::Category::Data => {
            // The error names the expected type, or one of our own rules.
            let is_own_rule = [RULE, "missing field"].iter().any(|start| text.starts_with(start));
            if is_own_rule {
                text.trim_start_matches(RULE).to_owned()
            } else {
                format!("a value has the wrong type {place}")
            }
        }
        _ => format!("the data is not JSON {place}"),
    }
}

/// Prefix of our own errors.
const RULE: &str = "rule: ";

impl<'de> Deserialize<'de> for EncodedInstance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = EncodedInstance;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an instance")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EncodedInstance, A::Error> {
        let mut instance = Instance::named("").id("").with_payload(None);
        instance.registered_at_ms = 0;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => instance.name = map.next_value()?,
                "id" => instance.id = map.next_value()?,
                "address" => instance.address = map.next_value()?,
                "port" => instance.port = port("port", &map.next_value()?)?,
                "sslPort" => instance.ssl_port = port("sslPort", &map.next_value()?)?,
                "payload" => {
                    instance.payload =
                        Some(map.next_value::<Box<RawValue>>()?).filter(|raw| raw.get() != "null");
                }
                "registrationTimeUTC" => {
                    let time = map.next_value()?;
                    instance.registered_at_ms = integer(&time).ok_or_else(|| {
                        A::Error::custom(format!(
                            "{RULE}registrationTimeUTC must be a number of milliseconds"
                        ))
                    })?;
                }
                "serviceType" => instance.service_type = service_type(&map.next_value()?)?,
                "uriSpec" => instance.uri_spec = map.next_value()?,
                "enabled" => {
                    instance.enabled = map.next_value()?;
                    instance.writes_enabled = true;
                }
                "weight" => {
                    let raw: Box<RawValue> = map.next_value()?;
                    instance.weight = read_weight(raw.get());
                    if instance.weight.is_none() {
                        instance.unknown.push((key, raw));
                    }
                }
                _ => instance.unknown.push((key, map.next_value()?)),
            }
        }
        Ok(instance)
    }
}

/// Returns a whole number, which may be written as text.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn port<E: serde::de::Error>(key: &str, value: &Value) -> Result<Option<u16>, E> {
    if value.is_null() {
        return Ok(None);
    }
    let port = integer(value).and_then(|number| u16::try_from(number).ok());
    port.map(Some).ok_or_else(|| E::custom(format!("{RULE}{key} must be a number from 0 to 65535")))
}

fn service_type<E: serde::de::Error>(value: &Value) -> Result<ServiceType, E> {
    match value {
        Value::Null => Some(ServiceType::Dynamic),
        Value::String(name) => ServiceType::named(name),
        Value::Number(number) => number.as_i64().and_then(ServiceType::numbered),
        _ => None,
    }
    .ok_or_else(|| E::custom(format!("{RULE}serviceType must be one of Curator's")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_refused(json: &str, why: &str) {
        let error = decode(json.as_bytes()).unwrap_err();
        assert!(error.contains(why), "{json}: {error}");
    }

    #[test]
    fn records_of_older_and_newer_curators_are_readable() {
        let old = decode(br#"{"name":"svc","id":"id1","address":"10.0.0.1","port":"80"}"#).unwrap();
        assert_eq!((old.port, old.ssl_port, old.enabled, old.registered_at_ms), (Some(80), None, true, 0));
        assert_eq!(old.service_type, ServiceType::Dynamic);
        assert!(old.uri_spec.is_none() && old.payload.is_none());
        let new = br#"{"id":"id1","name":"svc","port":null,"sslPort":443,"serviceType":3,"enabled":false,"registrationTimeUTC":-5}"#;
        let new = decode(new).unwrap();
        assert_eq!((new.ssl_port, new.enabled, new.registered_at_ms), (Some(443), false, -5));
        assert_eq!(new.service_type, ServiceType::DynamicSequential);
        let empty = decode(b"{}").unwrap();
        assert_eq!((empty.name.as_str(), empty.address), ("", None));
    }

    #[test]
    fn only_the_same_instance_can_be_disabled_by_its_node() {
        let wanted = br#"{"name":"svc","id":"1","payload":"p"}"#;
        for (found, shown) in [
            (r#"{"enabled":false,"id":"1","name":"svc"}"#, Some(Shown::FinalData)),
            (r#"{"id":"1","name":"svc","payload":"q"}"#, Some(Shown::Data)),
            (r#"{"enabled":false,"id":"2","name":"svc"}"#, None),
            (r#"{"enabled":false,"id":"1"}"#, None),
            ("__REVOKE__", None),
            ("", None),
        ] {
            assert_eq!(read_choice(found.as_bytes(), wanted), shown, "{found}");
        }
        assert_eq!(read_choice(b"{}", b""), None, "Dubbo's nodes have no data");
    }

    #[test]
    fn unknown_fields_are_written_back_unchanged() {
        let json = r#"{"name":"svc","id":"id1","address":"10.0.0.1","port":80,"sslPort":null,"payload":{"z": [1,  2.50], "a":1e400},"registrationTimeUTC":1234567890123,"serviceType":"STATIC","uriSpec":null,"enabled":true,"zone":  {"b":1, "a":12345678901234567890123},"weight":"heavy","at":null}"#;
        let written = String::from_utf8(decode(json.as_bytes()).unwrap().to_json()).unwrap();
        assert_eq!(written, json.replace("\"zone\":  {", "\"zone\":{"));
    }

    #[test]
    fn bad_json_is_an_error_with_a_reason_but_without_values() {
        is_refused("", "there is no data");
        is_refused("at 10.0.0.7", "the data is not JSON at line 1 column");
        is_refused("{\"name\":\"a\"", "the data is not JSON");
        is_refused("{} {}", "the data is not JSON");
        is_refused("\u{feff}{}", "the data is not JSON");
        is_refused("[\"secret\"]", "a value has the wrong type");
        is_refused(r#"{"name":null}"#, "a value has the wrong type");
        is_refused(r#"{"port":70000}"#, "port must be a number from 0 to 65535");
        is_refused(r#"{"sslPort":-1}"#, "sslPort must be a number from 0 to 65535");
        is_refused(r#"{"port":80.5}"#, "port must be");
        is_refused(r#"{"serviceType":"EPHEMERAL"}"#, "serviceType must be one of Curator's");
        is_refused(r#"{"serviceType":4}"#, "serviceType must be");
        is_refused(r#"{"registrationTimeUTC":9223372036854775808}"#, "registrationTimeUTC must be");
        is_refused(r#"{"enabled":"secret"}"#, "a value has the wrong type");
        is_refused(
            &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
            "the data nests deeper than 64",
        );
        is_refused(
            &format!("{{\"payload\":{}1{}}}", "{\"a\":".repeat(65), "}".repeat(65)),
            "the data nests deeper than 64",
        );
        assert!(decode(b"\xff{}").is_err());
        decode(format!("{{\"payload\":{}{}}}", "[".repeat(64), "]".repeat(64)).as_bytes()).unwrap();
        decode(format!("{{\"payload\":\"\\\"{}\"}}", "[".repeat(100)).as_bytes()).unwrap();
    }

    proptest! {
        #[test]
        fn no_input_makes_the_decoder_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&data);
        }

        #[test]
        fn a_written_record_reads_back(name in ".*", id in ".*", address: Option<String>, port: Option<u16>, at: i64, enabled: bool, weight: Option<u32>) {
            let mut instance = Instance::named(name).id(id).enabled(enabled).with_payload(None);
            (instance.address, instance.port, instance.weight) = (address, port, weight);
            instance.registered_at_ms = at;
            let read = decode(&instance.to_json()).unwrap();
            prop_assert_eq!(read.to_json(), instance.to_json());
        }
    }
}
