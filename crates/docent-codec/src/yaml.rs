use crate::text::utf8;
use crate::{Codec, CodecError};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_norway::{Error, Value};
use std::collections::HashSet;

/// Codec for values as one YAML document, by serde. Needs the feature `yaml`.
///
/// A document that is nested deeper than 128 levels is rejected, in both directions. So is one with more than
/// 128 brackets open at a time, even if they are in texts, and one that refers to an anchor (`&name`) by an
/// alias (`*name`): a short document could repeat its content without end. Unknown and missing fields are
/// handled as serde does for the type: `#[serde(deny_unknown_fields)]`, `#[serde(default)]`. The variant of
/// an enum with content is a tag: `!limited 5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(docsrs, doc(cfg(feature = "yaml")))]
pub struct Yaml;

impl<T: Serialize + DeserializeOwned> Codec<T> for Yaml {
    fn encode(&self, value: &T) -> Result<Bytes, CodecError> {
        let text = serde_norway::to_string(value).map_err(|error| {
            CodecError::new("the value cannot be written as YAML").with_detail(error.to_string())
        })?;
        // The writer has no limit of nesting.
        check_brackets(&text)?;
        check_aliases(&text)?;
        serde_norway::from_str::<Value>(&text).map_err(|error| not_yaml(&error))?;
        Ok(text.into())
    }

    fn decode(&self, data: &Bytes) -> Result<T, CodecError> {
        if data.is_empty() {
            return Err(CodecError::new("no data where YAML is expected"));
        }
        let text = utf8(data)?;
        check_brackets(text)?;
        check_aliases(text)?;
        serde_norway::from_str(text).map_err(|error| match serde_norway::from_str::<Value>(text) {
            Ok(_) => at("YAML does not fit the type", &error),
            Err(error) => not_yaml(&error),
        })
    }
}

/// Maximum number of brackets that are open at a time: the maximum nesting that the parser supports.
const MAX_OPEN: usize = 128;

/// Rejects a text with too many open brackets. The parser's time would grow with their square.
fn check_brackets(text: &str) -> Result<(), CodecError> {
    let mut open = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_OPEN {
            return Err(CodecError::new(format!("YAML must not have more than {MAX_OPEN} open brackets")));
        }
    }
    Ok(())
}

/// Rejects a text with an alias for one of its anchors. In texts, names are taken for anchors and aliases
/// only if the same name follows a `&` and a `*` where an anchor and an alias could be.
fn check_aliases(text: &str) -> Result<(), CodecError> {
    let names = |mark: char| text.match_indices(mark).filter_map(move |(at, _)| name_at(text, at));
    let anchors: HashSet<_> = names('&').collect();
    match names('*').find(|name| anchors.contains(name)) {
        Some(name) => {
            Err(CodecError::new("YAML must not have aliases").with_detail(format!("alias *{name}")))
        }
        None => Ok(()),
    }
}

/// Returns the name after the mark at a position where a value may begin.
fn name_at(text: &str, mark: usize) -> Option<&str> {
    let begins = |before: char| before.is_whitespace() || matches!(before, '[' | '{' | ',' | ':');
    if !text[..mark].chars().next_back().is_none_or(begins) {
        return None;
    }
    let rest = &text[mark + 1..];
    let is_named = |char: char| !char.is_whitespace() && !matches!(char, ',' | '[' | ']' | '{' | '}');
    let name = &rest[..rest.find(|char| !is_named(char)).unwrap_or(rest.len())];
    Some(name).filter(|name| !name.is_empty())
}

fn not_yaml(error: &Error) -> CodecError {
    at("not YAML, or beyond the parser's limits,", error)
}

fn at(fault: &str, error: &Error) -> CodecError {
    let summary = match error.location() {
        Some(at) => format!("{fault} at line {} column {}", at.line(), at.column()),
        None => fault.trim_end_matches(',').to_owned(),
    };
    CodecError::new(summary).with_detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_tests::{check_any_bytes, check_round_trips, nested};
    use std::collections::BTreeMap;

    fn decode<T: Serialize + DeserializeOwned>(text: &str) -> Result<T, CodecError> {
        Yaml.decode(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        check_round_trips(&Yaml);
        let map: BTreeMap<String, u32> = decode("a: 1\n# comment\nb: 2\n").unwrap();
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    }

    #[test]
    fn an_error_names_the_position_and_nothing_of_the_value() {
        for (text, summary) in [
            ("", "no data where YAML is expected"),
            ("a: 1\nb: secret", "YAML does not fit the type at line 2 column 4"),
            ("a: 1\nb: [secret", "not YAML, or beyond the parser's limits, at line 3 column 1"),
            ("- 1", "YAML does not fit the type at line 1 column 1"),
            ("a: 1\n---\nb: 2", "not YAML, or beyond the parser's limits"),
        ] {
            let error = decode::<BTreeMap<String, u32>>(text).unwrap_err();
            assert_eq!(error.to_string(), summary, "{text}");
            assert!(!format!("{error:?}").contains("secret"));
        }
        let error = decode::<BTreeMap<String, u32>>("b: secret").unwrap_err();
        assert!(error.detail().unwrap().contains("b: invalid type"), "{:?}", error.detail());
        let error = Codec::<Value>::decode(&Yaml, &Bytes::from_static(b"a: \xff")).unwrap_err();
        assert_eq!(error.to_string(), "not UTF-8 at byte 3");
    }

    #[test]
    fn nesting_and_aliases_are_limited() {
        for levels in [100, 1_000, 100_000] {
            let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            assert_eq!(decode::<Value>(&text).is_ok(), levels == 100, "{levels}");
            let text = "- ".repeat(levels) + "1";
            assert_eq!(decode::<Value>(&text).is_ok(), levels == 100, "{levels}");
        }
        assert!(Codec::encode(&Yaml, &nested(100)).is_ok());
        assert!(Codec::encode(&Yaml, &nested(1_000)).is_err());
        let mut laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (name, before) in ('b'..='i').zip('a'..) {
            laughs += &format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 9].join(","));
        }
        assert!(decode::<Value>(&laughs).is_err());
    }

    #[test]
    fn an_alias_is_rejected_and_texts_that_look_similar_are_not() {
        let repeated = format!("a: &a [{}]\nb: [{}]", "x,".repeat(1_000), "*a,".repeat(1_000));
        for text in
            [&repeated, "a: &x 1\nb: *x", "[&x 1,*x]", "{\"a\":&x 1,\"b\":*x}", "- &x\n  y: 1\n- *x\n"]
        {
            for error in [decode::<Value>(text).unwrap_err(), decode::<u32>(text).unwrap_err()] {
                assert_eq!(error.to_string(), "YAML must not have aliases", "{text}");
            }
        }
        for text in
            ["cron: '0 */5 * * *'", "a: &x 1", "'R&D and 2 *D'", "a: 'x &y'\nb: 'x *z'", "a: x*y & x&y"]
        {
            assert!(decode::<Value>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error() {
        check_any_bytes(&Yaml, b"[]{}:,-&*!|>'\"#% \n\t\\01ab\xff\x00");
    }
}
