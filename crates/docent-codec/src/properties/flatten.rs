use crate::CodecError;
use crate::texts::key::{self, Step};
use serde_json::Value;

/// Returns the key and the text of each scalar in a value. An empty list or map is an empty text.
pub(super) fn flatten(value: Value) -> Result<Vec<(String, String)>, CodecError> {
    let Value::Object(_) = value else {
        return Err(CodecError::new("properties must be a struct or a map"));
    };
    let mut entries = Vec::new();
    add(&mut entries, &mut Vec::new(), value)?;
    Ok(entries)
}

fn add(entries: &mut Vec<(String, String)>, at: &mut Vec<Step>, value: Value) -> Result<(), CodecError> {
    match value {
        Value::Null => {
            if let Some(Step::Index(_)) = at.last() {
                return Err(CodecError::new(format!("element {} must not be empty", key(at)?)));
            }
        }
        Value::Bool(value) => entries.push((key(at)?, value.to_string())),
        Value::Number(value) => entries.push((key(at)?, value.to_string())),
        Value::String(value) => entries.push((key(at)?, value)),
        Value::Array(values) if values.is_empty() => entries.push((key(at)?, String::new())),
        Value::Object(values) if values.is_empty() => {
            if !at.is_empty() {
                entries.push((key(at)?, String::new()));
            }
        }
        Value::Array(values) => {
            for (index, value) in values.into_iter().enumerate() {
                add_below(entries, at, Step::Index(index), value)?;
            }
        }
        Value::Object(values) => {
            for (name, value) in values {
                add_below(entries, at, Step::Name(name), value)?;
            }
        }
    }
    Ok(())
}

fn add_below(
    entries: &mut Vec<(String, String)>,
    at: &mut Vec<Step>,
    step: Step,
    value: Value,
) -> Result<(), CodecError> {
    at.push(step);
    // Readers reject longer keys.
    key(at)?;
    add(entries, at, value)?;
    at.pop();
    Ok(())
}

/// Returns the key, if readers will find the same steps in it.
fn key(at: &[Step]) -> Result<String, CodecError> {
    let key = at.iter().fold(String::new(), |key, step| key::below(&key, step));
    match key::steps(&key) {
        Some(steps) if steps == at => Ok(key),
        Some(_) => Err(CodecError::new(format!("key {key:?} must not contain brackets in a name"))),
        None => Err(CodecError::new(format!("a key must have at most {} levels", key::MAX_STEPS))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_properties_cannot_hold_is_refused() {
        let deep = (0..65).fold(json!(1), |inside, _| json!({ "a": inside }));
        for (value, rule) in [
            (json!(5), "properties must be a struct or a map"),
            (json!([1]), "properties must be a struct or a map"),
            (json!({ "a": [1, null] }), "element a[1] must not be empty"),
            (json!({ "a": { "b[0]": 1 } }), "key \"a[b[0]]\" must not contain brackets in a name"),
            (deep, "a key must have at most 64 levels"),
        ] {
            assert_eq!(flatten(value).unwrap_err().to_string(), rule);
        }
        assert!(flatten(json!({})).unwrap().is_empty());
    }
}
