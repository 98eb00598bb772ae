use crate::exit::Failure;
use serde_json::{Map, Value};

/// Members of the JSON object in `value` as variables: names in capitals, members of inner objects joined to
/// theirs by `_`, lists as JSON, and `null` as nothing.
///
/// # Errors
/// `BadData` when it is no JSON object, or two members have the same name as variables.
pub(super) fn variables(value: &[u8]) -> Result<Vec<(String, String)>, Failure> {
    let members: Map<String, Value> = serde_json::from_slice(value)
        .map_err(|error| Failure::BadData(format!("the value is no JSON object: {error}")))?;
    let mut variables = Vec::new();
    collect("", &members, &mut variables);
    variables.sort();
    match variables.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Failure::BadData(format!("two members of the value are named {}", pair[0].0))),
        None => Ok(variables),
    }
}

/// Lines that set the variables in a POSIX shell.
pub(super) fn lines(variables: &[(String, String)]) -> String {
    variables.iter().map(|(name, value)| format!("{name}='{}'\n", value.replace('\'', "'\\''"))).collect()
}

fn collect(prefix: &str, members: &Map<String, Value>, into: &mut Vec<(String, String)>) {
    for (key, value) in members {
        let name = format!("{prefix}{}", name(key, prefix.is_empty()));
        match value {
            Value::Object(inner) => collect(&format!("{name}_"), inner, into),
            Value::String(text) => into.push((name, text.replace('\0', ""))),
            Value::Null => into.push((name, String::new())),
            other => into.push((name, other.to_string())),
        }
    }
}

/// Name of a variable: a shell knows letters, digits and `_`, and no digit at the beginning.
fn name(key: &str, is_first: bool) -> String {
    let known = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = key.chars().map(known).collect();
    if is_first && !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        format!("_{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> String {
        lines(&variables(value.as_bytes()).unwrap())
    }

    #[test]
    fn members_become_names_in_capitals() {
        let value = r#"{"per-second": 100, "db": {"host": "a b"}, "on": true, "none": null, "list": [1, 2]}"#;
        assert_eq!(text(value), "DB_HOST='a b'\nLIST='[1,2]'\nNONE=''\nON='true'\nPER_SECOND='100'\n");
        assert_eq!(text(r#"{"": 1}"#), "_='1'\n");
        assert_eq!(text(r#"{"2fast": 1}"#), "_2FAST='1'\n");
    }

    #[test]
    fn a_value_cannot_leave_its_quotes() {
        assert_eq!(text(r#"{"a": "'; rm -rf / #\n"}"#), "A=''\\''; rm -rf / #\n'\n");
    }

    #[test]
    fn other_values_are_refused() {
        for value in ["", "7", "[]", "{\"a\": 1, \"A\": 2}", "{"] {
            assert!(matches!(variables(value.as_bytes()), Err(Failure::BadData(_))), "{value}");
        }
    }
}
