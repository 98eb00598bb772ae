use super::decode::describe;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::any::TypeId;

/// Decodes a payload as a `P`, including Java's encodings: with a class name in the object's `@class`, or as
/// a list of class name and value. With `()` as `P`, the payload is not read.
///
/// # Errors
/// What is wrong with the payload, without any of its values.
pub(crate) fn read<P: DeserializeOwned + 'static>(raw: Option<&RawValue>) -> Result<Option<P>, String> {
    let Some(raw) = raw else { return Ok(None) };
    if TypeId::of::<P>() == TypeId::of::<()>() {
        return Ok(None);
    }
    match serde_json::from_str(raw.get()) {
        Ok(payload) => Ok(Some(payload)),
        Err(error) => match of_java(raw).and_then(|value| P::deserialize(value).ok()) {
            Some(payload) => Ok(Some(payload)),
            None => Err(format!("payload: {}", describe(&error))),
        },
    }
}

/// Removes class names from Java's JSON. Returns `None` if there are none.
fn of_java(raw: &RawValue) -> Option<Value> {
    match serde_json::from_str(raw.get()).ok()? {
        Value::Array(pair) => {
            let [class, value] = <[Value; 2]>::try_from(pair).ok()?;
            class.is_string().then_some(value)
        }
        Value::Object(mut object) => object.remove("@class").map(|_| Value::Object(object)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use std::collections::HashMap;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Meta {
        zone: String,
    }

    fn read_text<P: DeserializeOwned + 'static>(json: &str) -> Result<Option<P>, String> {
        read(Some(&RawValue::from_string(json.to_owned()).unwrap()))
    }

    #[test]
    fn payloads_are_read_as_rust_and_as_java_write_them() {
        let meta = Some(Meta { zone: "a".into() });
        assert_eq!(read_text(r#"{"zone":"a"}"#), Ok(meta));
        assert_eq!(
            read_text(r#"{"@class":"com.shop.Meta","zone":"a"}"#),
            Ok(Some(Meta { zone: "a".into() }))
        );
        assert_eq!(read_text(r#"["java.lang.Long",5]"#), Ok(Some(5_i64)));
        let list = read_text::<Vec<String>>(r#"["java.util.ArrayList",["a","b"]]"#).unwrap().unwrap();
        assert_eq!(list, ["a", "b"]);
        let map = read_text::<HashMap<String, u32>>(r#"{"@class":"java.util.HashMap","k":1}"#).unwrap();
        assert_eq!(map, Some(HashMap::from([("k".to_owned(), 1)])));
        assert_eq!(read_text(r#""pl""#), Ok(Some("pl".to_owned())));
        assert_eq!(read::<Meta>(None), Ok(None));
    }

    #[test]
    fn a_payload_read_as_the_unit_type_is_not_decoded() {
        assert_eq!(read_text::<()>(r#"{"@class":"no.such.Thing"}"#), Ok(None));
    }

    #[test]
    fn a_payload_of_another_type_is_an_error_without_its_values() {
        let error = read_text::<Meta>(r#"{"zone":5,"key":"secret"}"#).unwrap_err();
        assert_eq!(error, "payload: a value has the wrong type at line 1 column 9");
        let error = read_text::<Meta>("{}").unwrap_err();
        assert!(error.contains("missing field `zone`"), "{error}");
        assert!(read_text::<u32>(r#""secret""#).unwrap_err().find("secret").is_none());
    }
}
