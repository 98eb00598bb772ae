use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Key of an instance's status in `metadata`, and the values that Docent writes.
pub(super) const STATUS: &str = "instance_status";
pub(super) const UP: &str = "UP";
pub(super) const OUT_OF_SERVICE: &str = "OUT_OF_SERVICE";

#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "@class")]
    class: String,
}

/// Payload of a neighbour's class.
#[derive(Deserialize)]
pub(super) struct WithMetadata<M> {
    pub(super) metadata: M,
}

/// Returns the Java class that a payload names. Returns `None` for a payload of Java's own classes, which any
/// reader of maps accepts.
pub(super) fn class_of(payload: &RawValue) -> Option<String> {
    let Tagged { class } = object(payload)?;
    Some(class).filter(|class| !class.starts_with("java."))
}

/// Returns true for a payload with a status in which Spring Cloud's callers skip the instance: any that is
/// neither empty nor `UP`.
pub(crate) fn is_out_of_service(payload: Option<&RawValue>) -> bool {
    let Some(payload) = payload.filter(|payload| payload.get().contains(STATUS)) else { return false };
    let Some(WithMetadata::<HashMap<String, Value>> { metadata }) = object(payload) else { return false };
    let status = metadata.get(STATUS).and_then(Value::as_str).unwrap_or_default().trim();
    !status.is_empty() && !status.eq_ignore_ascii_case(UP)
}

/// Deserializes an object. A list, which serde accepts for a struct as well, is none.
pub(super) fn object<T: DeserializeOwned>(payload: &RawValue) -> Option<T> {
    serde_json::from_str(payload.get()).ok().filter(|_| payload.get().starts_with('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn only_a_named_class_counts_as_one() {
        for (json, class) in [
            (r#"{"@class":"com.shop.Meta","zone":"a"}"#, Some("com.shop.Meta")),
            (r#"{"@class":"java.util.HashMap","zone":"a"}"#, None),
            (r#"{"zone":"a"}"#, None),
            (r#"["com.shop.Meta",{}]"#, None),
            (r#"["com.shop.Meta"]"#, None),
            (r#"{"@class":5}"#, None),
            (r#""com.shop.Meta""#, None),
        ] {
            assert_eq!(class_of(&raw(json)).as_deref(), class, "{json}");
        }
    }

    #[test]
    fn a_status_is_that_of_spring_cloud() {
        for (json, out) in [
            (r#"{"metadata":{"instance_status":"OUT_OF_SERVICE"}}"#, true),
            (r#"{"metadata":{"instance_status":"DOWN","zone":"a"}}"#, true),
            (r#"{"metadata":{"instance_status":"up"}}"#, false),
            (r#"{"metadata":{"instance_status":""}}"#, false),
            (r#"{"metadata":{"instance_status":null}}"#, false),
            (r#"{"metadata":["instance_status"]}"#, false),
            (r#"{"instance_status":"OUT_OF_SERVICE"}"#, false),
        ] {
            assert_eq!(is_out_of_service(Some(&raw(json))), out, "{json}");
        }
        assert!(!is_out_of_service(None));
    }
}
