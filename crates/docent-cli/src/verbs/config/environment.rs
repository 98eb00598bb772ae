use super::reserved::is_reserved;
use crate::exit::Failure;
use crate::output::Output;
use serde_json::{Map, Value};

/// Returns the [`variables`] of `value` that data may set. With a prefix, these are the variables whose names
/// start with it; without one, those that are not in this process's environment. Rejected names are reported
/// on standard error, except those without the prefix.
///
/// # Errors
/// Same as [`variables`].
pub(super) fn allowed(
    output: &Output,
    value: &[u8],
    prefix: Option<&str>,
) -> Result<Vec<(String, String)>, Failure> {
    let mut allowed = variables(value)?;
    allowed.retain(|(name, _)| match prefix {
        Some(prefix) if !name.starts_with(prefix) => false,
        _ if is_reserved(name) => {
            output.remark(format!("skipped a variable: a configuration value must not set {name}"));
            false
        }
        None if std::env::var_os(name).is_some() => {
            output.remark(format!(
                "skipped a variable: {name} is in the environment already; allow it with --env-prefix"
            ));
            false
        }
        _ => true,
    });
    Ok(allowed)
}

/// Parses a prefix of variable names. A prefix that is not a valid variable name would match nothing.
///
/// # Errors
/// The rule that the prefix breaks.
pub(super) fn prefix(text: &str) -> Result<String, String> {
    match !text.is_empty() && name(text, true) == text {
        true => Ok(text.to_owned()),
        false => Err("must be capitals, digits and '_', such as APP_".to_owned()),
    }
}

/// Converts the members of the JSON object in `value` to variables: names in capitals, members of inner
/// objects joined to their parent's name by `_`, lists as JSON, and `null` as an empty value.
///
/// # Errors
/// `BadData` if the value is not a JSON object, two members have the same variable name, or one contains a
/// zero byte, which no variable can hold.
fn variables(value: &[u8]) -> Result<Vec<(String, String)>, Failure> {
    let members: Map<String, Value> = serde_json::from_slice(value)
        .map_err(|error| Failure::bad_data(format!("the value is not a JSON object: {error}")))?;
    let mut variables = Vec::new();
    collect("", &members, &mut variables);
    variables.sort();
    if let Some((name, _)) = variables.iter().find(|(_, value)| value.contains('\0')) {
        return Err(Failure::bad_data(format!("the value of {name} contains a zero byte")));
    }
    match variables.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Failure::bad_data(format!(
            "two members of the value have the same variable name {}",
            pair[0].0
        ))),
        None => Ok(variables),
    }
}

/// Returns lines that set the variables in a POSIX shell, one per variable.
///
/// # Errors
/// `BadData` if a value contains control characters, with which it could span several lines.
pub(super) fn lines(variables: &[(String, String)]) -> Result<String, Failure> {
    if let Some((name, _)) = variables.iter().find(|(_, value)| value.contains(char::is_control)) {
        return Err(Failure::bad_data(format!("the value of {name} contains control characters")));
    }
    let line = |(name, value): &(String, String)| format!("{name}='{}'\n", value.replace('\'', "'\\''"));
    Ok(variables.iter().map(line).collect())
}

fn collect(prefix: &str, members: &Map<String, Value>, into: &mut Vec<(String, String)>) {
    for (key, value) in members {
        let name = format!("{prefix}{}", name(key, prefix.is_empty()));
        match value {
            Value::Object(inner) => collect(&format!("{name}_"), inner, into),
            Value::String(text) => into.push((name, text.clone())),
            Value::Null => into.push((name, String::new())),
            other => into.push((name, other.to_string())),
        }
    }
}

/// Returns the name of a variable: a shell allows letters, digits and `_`, and no digit at the start.
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
    use crate::exit::FailureKind;

    fn text(value: &str) -> String {
        lines(&variables(value.as_bytes()).unwrap()).unwrap()
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
        assert_eq!(text(r#"{"a": "'; rm -rf / #"}"#), "A=''\\''; rm -rf / #'\n");
        let more = variables(br#"{"db": {"a": "x\nPATH=/tmp"}}"#).unwrap();
        let refused = lines(&more).unwrap_err();
        assert!(refused.kind() == FailureKind::BadData && refused.to_string().contains("DB_A"), "{refused}");
    }

    #[test]
    fn a_prefix_is_the_beginning_of_a_name() {
        assert_eq!(prefix("APP_").as_deref(), Ok("APP_"));
        for wrong in ["", "app_", "1A", "A-"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        for value in ["", "7", "[]", "{\"a\": 1, \"A\": 2}", "{", r#"{"a": "x\u0000y"}"#] {
            let refused = variables(value.as_bytes()).unwrap_err();
            assert_eq!(refused.kind(), FailureKind::BadData, "{value}");
        }
    }
}
