use crate::text::utf8;
use crate::{Codec, CodecError};
use bytes::Bytes;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use toml::Deserializer;
use toml::de::Error;

/// Codec for values as TOML, by serde. Needs the feature `toml`.
///
/// The value must be a struct or a map, and cannot contain `None` in a list. A document that is nested deeper
/// than 80 levels is rejected, in both directions. Unknown and missing fields are handled as serde does for
/// the type: `#[serde(deny_unknown_fields)]`, `#[serde(default)]`. No data is a table without keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(docsrs, doc(cfg(feature = "toml")))]
pub struct Toml;

impl<T: Serialize + DeserializeOwned> Codec<T> for Toml {
    fn encode(&self, value: &T) -> Result<Bytes, CodecError> {
        let text = toml::to_string(value).map_err(|error| {
            CodecError::new("the value cannot be written as TOML").with_detail(error.to_string())
        })?;
        // The limit of nesting applies to readers only.
        read::<IgnoredAny>(&text)?;
        Ok(text.into())
    }

    fn decode(&self, data: &Bytes) -> Result<T, CodecError> {
        read(utf8(data)?)
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, CodecError> {
    let parsed = Deserializer::parse(text);
    let parsed = parsed.map_err(|error| at("not TOML, or beyond the parser's limits,", text, &error))?;
    T::deserialize(parsed).map_err(|error| at("TOML does not fit the type", text, &error))
}

fn at(fault: &str, text: &str, error: &Error) -> CodecError {
    let place = error.span().and_then(|span| text.get(..span.start));
    let summary = match place {
        Some(before) => {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
            format!("{fault} at line {line} column {column}")
        }
        None => fault.trim_end_matches(',').to_owned(),
    };
    CodecError::new(summary).with_detail(error.message())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_tests::{check_any_bytes, check_round_trips, nested};
    use std::collections::BTreeMap;
    use toml::Table;

    fn decode<T: Serialize + DeserializeOwned>(text: &str) -> Result<T, CodecError> {
        Toml.decode(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        check_round_trips(&Toml);
        let map: BTreeMap<String, u32> = decode("a = 1\n# comment\nb = 2\n").unwrap();
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        assert!(decode::<Table>("").unwrap().is_empty());
    }

    #[test]
    fn an_error_names_the_position_and_nothing_of_the_value() {
        for (text, summary) in [
            ("a = 1\nb = \"secret\"", "TOML does not fit the type at line 2 column 5"),
            ("a = 1\n\u{e4}b = secret", "not TOML, or beyond the parser's limits, at line 2 column 1"),
            ("a = 1\na = 2", "not TOML, or beyond the parser's limits, at line 2 column 1"),
        ] {
            let error = decode::<BTreeMap<String, u32>>(text).unwrap_err();
            assert_eq!(error.to_string(), summary, "{text}");
            assert!(!format!("{error:?}").contains("secret"));
        }
        let error = decode::<BTreeMap<String, u32>>("b = \"secret\"").unwrap_err();
        assert!(error.detail().unwrap().contains("expected u32"), "{:?}", error.detail());
        let error = Codec::<Table>::decode(&Toml, &Bytes::from_static(b"a=\xff")).unwrap_err();
        assert_eq!(error.to_string(), "not UTF-8 at byte 2");
        let error = Codec::encode(&Toml, &5_u32).unwrap_err();
        assert_eq!(error.to_string(), "the value cannot be written as TOML");
    }

    #[test]
    fn nesting_is_limited() {
        for levels in [50, 1_000, 100_000] {
            let text = format!("a = {}{}", "[".repeat(levels), "]".repeat(levels));
            assert_eq!(decode::<Table>(&text).is_ok(), levels == 50, "{levels}");
        }
        let table = |levels| BTreeMap::from([("a".to_owned(), nested(levels))]);
        assert!(Toml.encode(&table(50)).is_ok());
        assert!(Toml.encode(&table(1_000)).is_err());
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error() {
        check_any_bytes(&Toml, b"[]{}=,.'\"#-_ \n\r\t\\01abT:\xff\x00");
    }
}
