use super::Neighbour;
use super::class::{OUT_OF_SERVICE, STATUS, UP, class_of};
use super::dubbo3;
use crate::instance::{EncodedInstance, UriSpec};
use crate::texts::texts_of;
use docent_core::Error;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// URI template of Spring Cloud's instances.
const URI_SPEC: &str = "{scheme}://{address}:{port}";

/// Payload of the classes of both neighbours, in the order of their fields.
#[derive(Serialize)]
struct Payload<'a> {
    #[serde(rename = "@class")]
    class: &'static str,
    id: &'a str,
    name: &'a str,
    metadata: BTreeMap<String, String>,
}

/// Returns the instance as `neighbour` reads it.
///
/// # Errors
/// `InvalidInput` if the payload cannot be represented.
pub(crate) fn wrapped(neighbour: Neighbour, instance: &EncodedInstance) -> Result<EncodedInstance, Error> {
    let mut wrapped = instance.clone();
    let mut metadata = texts_of(instance, "for a neighbour")?;
    match neighbour {
        Neighbour::SpringCloud => {
            if let Some(weight) = instance.weight {
                metadata.insert("weight".to_owned(), weight.to_string());
            }
            if wrapped.uri_spec.is_none() {
                wrapped.uri_spec = Some(URI_SPEC.parse::<UriSpec>()?);
            }
        }
        Neighbour::Dubbo3 => dubbo3::describe(instance, &mut metadata)?,
    }
    let status = if instance.enabled { UP } else { OUT_OF_SERVICE };
    metadata.insert(STATUS.to_owned(), status.to_owned());
    let payload = Payload { class: neighbour.class(), id: &instance.id, name: &instance.name, metadata };
    let payload = serde_json::value::to_raw_value(&payload).expect("texts can be written as JSON");
    wrapped.payload = Some(payload);
    Ok(wrapped)
}

/// Returns the payload that was [wrapped], from a payload of `neighbour`'s class. Other payloads are returned
/// unchanged.
pub(crate) fn unwrapped(neighbour: Neighbour, payload: Box<RawValue>) -> Box<RawValue> {
    let is_own_class = class_of(&payload).as_deref() == Some(neighbour.class());
    let fields =
        is_own_class.then(|| serde_json::from_str::<Map<String, Value>>(payload.get()).ok()).flatten();
    let Some(Value::Object(mut metadata)) = fields.and_then(|mut fields| fields.remove("metadata")) else {
        return payload;
    };
    metadata.remove(STATUS);
    if neighbour == Neighbour::Dubbo3 {
        dubbo3::KEYS.iter().for_each(|key| drop(metadata.remove(*key)));
    }
    RawValue::from_string(Value::Object(metadata).to_string()).unwrap_or(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instance;

    fn encoded(payload: Option<&str>) -> EncodedInstance {
        let mut instance = Instance::new("orders", "10.0.0.7", 8080).id("i1");
        instance.registered_at_ms = 5;
        instance.with_payload(payload.map(|json| RawValue::from_string(json.to_owned()).unwrap()))
    }

    fn json(instance: &EncodedInstance) -> String {
        String::from_utf8(instance.to_json()).unwrap()
    }

    #[test]
    fn an_instance_for_spring_cloud_has_its_bytes() {
        let given = encoded(Some(r#"{"zone":"a","cores":4,"spot":true,"none":null}"#));
        let wrapped = wrapped(Neighbour::SpringCloud, &given).unwrap();
        assert_eq!(
            json(&wrapped),
            r#"{"name":"orders","id":"i1","address":"10.0.0.7","port":8080,"sslPort":null,"payload":{"@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","id":"i1","name":"orders","metadata":{"cores":"4","instance_status":"UP","spot":"true","zone":"a"}},"registrationTimeUTC":5,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true}]}}"#
        );
        let payload = unwrapped(Neighbour::SpringCloud, wrapped.payload.unwrap());
        assert_eq!(payload.get(), r#"{"cores":"4","spot":"true","zone":"a"}"#);
    }

    #[test]
    fn the_status_follows_the_state_and_not_the_payload() {
        let given = encoded(Some(r#"{"instance_status":"UP"}"#)).enabled(false).weight(3);
        let json = json(&wrapped(Neighbour::SpringCloud, &given).unwrap());
        assert!(json.contains(r#""metadata":{"instance_status":"OUT_OF_SERVICE","weight":"3"}"#), "{json}");
        let bare = wrapped(Neighbour::SpringCloud, &encoded(None)).unwrap();
        assert!(bare.payload.unwrap().get().ends_with(r#""metadata":{"instance_status":"UP"}}"#));
    }

    #[test]
    fn a_payload_that_is_no_set_of_texts_is_refused() {
        for payload in ["[1]", "\"a\"", r#"{"a":{"b":1}}"#, r#"{"a":[1]}"#, r#"{"a":[]}"#] {
            let error = wrapped(Neighbour::SpringCloud, &encoded(Some(payload))).unwrap_err().to_string();
            assert!(error.contains("must be an object of texts"), "{payload}: {error}");
        }
    }

    #[test]
    fn a_payload_of_another_class_is_read_as_it_is() {
        for payload in [r#"{"zone":"a"}"#, r#"{"@class":"com.shop.Meta","metadata":{"zone":"a"}}"#, "\"a\""] {
            let raw = RawValue::from_string(payload.to_owned()).unwrap();
            assert_eq!(unwrapped(Neighbour::SpringCloud, raw).get(), payload);
        }
    }
}
