use crate::{Codec, CodecError};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Codec for values as JSON, by serde.
///
/// A value that is nested deeper than [`max_nesting`](Self::max_nesting) is rejected, before it is parsed or
/// written. Unknown and missing fields are handled as serde does for the type:
/// `#[serde(deny_unknown_fields)]`, `#[serde(default)]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json {
    max_nesting: usize,
}

/// Maximum nesting that the parser supports.
const MAX_NESTING: usize = 127;

impl Json {
    /// Creates a codec with at most 64 levels of nesting.
    pub fn new() -> Self {
        Self { max_nesting: 64 }
    }

    /// Sets the maximum nesting of arrays and objects, from 1 to 127 levels; a value outside this range is
    /// replaced by the nearest limit. Default 64.
    #[must_use]
    pub fn max_nesting(self, levels: usize) -> Self {
        Self { max_nesting: levels.clamp(1, MAX_NESTING) }
    }

    /// Rejects data that is nested too deeply, for a codec that parses the data in another way. The data does
    /// not have to be JSON: other errors are left to the parser.
    ///
    /// # Errors
    /// If arrays and objects are nested deeper than [`max_nesting`](Self::max_nesting).
    pub fn check_nesting(&self, data: &[u8]) -> Result<(), CodecError> {
        let max = self.max_nesting;
        if is_deeper_than(max, data) {
            return Err(CodecError::new(format!("JSON must not be nested deeper than {max} levels")));
        }
        Ok(())
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn encode(&self, value: &T) -> Result<Bytes, CodecError> {
        let data = serde_json::to_vec(value).map_err(|error| {
            CodecError::new("the value cannot be written as JSON").with_detail(error.to_string())
        })?;
        self.check_nesting(&data)?;
        Ok(data.into())
    }

    fn decode(&self, data: &Bytes) -> Result<T, CodecError> {
        self.check_nesting(data)?;
        serde_json::from_slice(data).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let summary = match error.classify() {
                Category::Data => format!("JSON does not fit the type at line {line} column {column}"),
                Category::Eof if data.is_empty() => "no data where JSON is expected".to_owned(),
                Category::Eof => "JSON ends unexpectedly".to_owned(),
                Category::Syntax | Category::Io => format!("not JSON at line {line} column {column}"),
            };
            CodecError::new(summary).with_detail(error.to_string())
        })
    }
}

/// Returns whether arrays and objects are nested deeper than `max`.
fn is_deeper_than(max: usize, data: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in data {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn decode(codec: Json, text: &str) -> Result<Value, CodecError> {
        codec.decode(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn nesting_is_limited_before_anything_is_parsed() {
        for (text, fits) in
            [("[[1]]", true), ("[[[1]]]", false), ("{\"a\":[\"[[[[\\\"[[\"]}", true), ("[][][]", true)]
        {
            assert_eq!(is_deeper_than(2, text.as_bytes()), !fits, "{text}");
        }
        let bomb = "[".repeat(100_000);
        let error = decode(Json::new(), &bomb).unwrap_err();
        assert_eq!(error.to_string(), "JSON must not be nested deeper than 64 levels");
        for levels in [1, 64, 127] {
            let codec = Json::new().max_nesting(levels);
            let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            assert!(decode(codec, &nested(levels)).is_ok());
            assert!(decode(codec, &nested(levels + 1)).is_err());
            // A value that could not be decoded is not encoded either.
            let value =
                |levels| (1..levels).fold(Value::Array(Vec::new()), |inside, _| Value::Array(vec![inside]));
            assert!(codec.encode(&value(levels)).is_ok());
            assert!(codec.encode(&value(levels + 1)).is_err());
        }
        assert_eq!(Json::new().max_nesting(1_000_000), Json::new().max_nesting(MAX_NESTING));
    }

    #[test]
    fn an_error_names_the_position_and_nothing_of_the_value() {
        for (text, summary) in [
            ("", "no data where JSON is expected"),
            ("{\"a\":", "JSON ends unexpectedly"),
            ("{\"a\": secret}", "not JSON at line 1 column 7"),
            ("\u{feff}{}", "not JSON at line 1 column 1"),
        ] {
            assert_eq!(decode(Json::new(), text).unwrap_err().to_string(), summary);
        }
        let error = Codec::<u32>::decode(&Json::new(), &Bytes::from_static(b"\n\"secret\"")).unwrap_err();
        assert_eq!(error.to_string(), "JSON does not fit the type at line 2 column 8");
        assert!(!format!("{error:?}").contains("secret"));
        assert!(error.detail().unwrap().contains("expected u32"));
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error() {
        for seed in 0..2_000_u64 {
            // Brackets, quotes and similar bytes, in any order.
            let alphabet = b"[]{}\",:\\01e-. \xff\x00tn";
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let data: Vec<u8> = (0..40)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    alphabet[usize::try_from(state % alphabet.len() as u64).unwrap()]
                })
                .collect();
            let _: Result<Value, _> = Json::new().decode(&data.into());
        }
    }
}
