use super::escape::is_unsafe;
use serde::Serialize;
use std::fmt::Write;
use std::io;

/// Returns a value as a YAML document that is safe to show on a terminal.
///
/// Block style has no escapes for all characters that a terminal must not get. A value with such a character
/// is written in flow style instead, as JSON with YAML's escapes: every parser of YAML 1.2 reads both.
pub(super) fn yaml(value: &impl Serialize) -> io::Result<String> {
    let block = serde_norway::to_string(value).map_err(io::Error::other)?;
    if !block.chars().any(|char| char != '\n' && is_unsafe(char)) {
        return Ok(format!("---\n{block}"));
    }
    let mut flow = "---\n".to_owned();
    for char in serde_json::to_string(value)?.chars() {
        match is_unsafe(char) {
            // Writing to a string cannot fail.
            true => drop(write!(flow, "\\U{:08x}", u32::from(char))),
            false => flow.push(char),
        }
    }
    flow.push('\n');
    Ok(flow)
}

#[cfg(test)]
mod tests {
    use super::yaml;
    use serde_json::{Value, json};

    fn read(text: &str) -> Value {
        serde_norway::from_str(text).unwrap()
    }

    #[test]
    fn a_value_becomes_a_document_in_block_style() {
        let value = json!({"path": "/a", "value": "x\ny\n", "list": [1, null], "yes": "no"});
        let text = yaml(&value).unwrap();
        assert!(text.starts_with("---\n") && text.contains("\npath: /a\n"), "{text}");
        assert_eq!(read(&text), value);
    }

    #[test]
    fn characters_that_steer_a_terminal_are_escaped_and_read_back() {
        for hostile in
            ["a\u{1b}[2J", "a\u{202e}b", "\u{e0041}", "a\u{200b}: \"b\"\t\u{feff}", "\u{85}\u{2028}"]
        {
            let value = json!({"path": hostile, "n": 1});
            let text = yaml(&value).unwrap();
            assert!(!text.chars().any(|char| char != '\n' && super::is_unsafe(char)), "{text:?}");
            assert_eq!(read(&text), value, "{text:?}");
        }
    }
}
