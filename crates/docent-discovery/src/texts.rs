use crate::instance::EncodedInstance;
use docent_core::Error;
use serde_json::Value;
use std::collections::BTreeMap;

/// Fields of a payload as texts.
pub(crate) type Texts = BTreeMap<String, String>;

/// Returns the fields of an instance's payload as texts. `place` says for errors where they are written, such
/// as `in Dubbo's layout`. A list of texts becomes one text with commas.
pub(crate) fn texts_of(instance: &EncodedInstance, place: &str) -> Result<Texts, Error> {
    let refused = || {
        let detail = format!("a payload {place} must be an object of texts, numbers and booleans");
        Err(Error::invalid_input("register", detail))
    };
    let Some(raw) = &instance.payload else { return Ok(Texts::new()) };
    let Ok(Value::Object(fields)) = serde_json::from_str(raw.get()) else { return refused() };
    let mut texts = Texts::new();
    for (name, value) in fields {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(bool) => bool.to_string(),
            Value::Array(values) => match values.iter().map(Value::as_str).collect::<Option<Vec<_>>>() {
                Some(texts) if !texts.is_empty() => texts.join(","),
                _ => return refused(),
            },
            Value::Object(_) => return refused(),
        };
        texts.insert(name, text);
    }
    Ok(texts)
}
