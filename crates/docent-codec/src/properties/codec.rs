use super::{flatten, parse, write};
use crate::internals::Texts;
use crate::{Codec, CodecError};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Codec for values as the text of a Java properties file, by serde. Needs the feature `properties`.
///
/// The value must be a struct or a map. Dots separate the names of nested fields, and brackets contain the
/// index of an element (`hosts[0]`) or a key with dots (`level[org.example]`). A field may be written in any
/// style: `max-threads`, `maxThreads` and `max_threads` are the same field. A list may be one text separated
/// by commas. Of several lines with the same key, the last one counts. A key has at most 64 levels.
///
/// Data that is UTF-8 is read as UTF-8, and other data as ISO-8859-1. Only ASCII is written; other characters
/// are escaped (`\u00e4`), so Java reads them in any version. `None` is not written. Inside
/// `#[serde(flatten)]` and untagged enums, every text is a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(docsrs, doc(cfg(feature = "properties")))]
pub struct Properties;

impl<T: Serialize + DeserializeOwned> Codec<T> for Properties {
    fn encode(&self, value: &T) -> Result<Bytes, CodecError> {
        let value = serde_json::to_value(value).map_err(|error| {
            CodecError::new("the value cannot be written as properties").with_detail(error.to_string())
        })?;
        Ok(write::lines(&flatten::flatten(value)?).into())
    }

    fn decode(&self, data: &Bytes) -> Result<T, CodecError> {
        let (mut texts, mut lines) = (Texts::default(), BTreeMap::new());
        for (line, key, text) in parse::entries(&parse::text(data))? {
            let inserted = texts.insert(&key, &text, 0);
            inserted.map_err(|error| error.into_codec_error(&format!("the key in line {line}")))?;
            lines.insert(key, line);
        }
        texts.decode().map_err(|error| {
            let key = error.key().to_owned();
            error.into_codec_error(&match lines.get(&key) {
                Some(line) => format!("key {key:?} in line {line}"),
                None if key.is_empty() => "the whole value".to_owned(),
                None => format!("key {key:?}"),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_tests::{check_any_bytes, check_round_trips};
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Settings {
        server: Server,
        #[serde(default)]
        hosts: Vec<String>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Server {
        port: u16,
        max_threads: Option<u32>,
    }

    fn decode(text: &str) -> Result<Settings, CodecError> {
        Properties.decode(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        check_round_trips(&Properties);
        let hosts = vec!["\u{e4}".to_owned(), " b".to_owned()];
        let value = Settings { server: Server { port: 80, max_threads: None }, hosts };
        let data = Properties.encode(&value).unwrap();
        assert_eq!(data, "hosts[0]=\\u00e4\nhosts[1]=\\ b\nserver.port=80\n");
    }

    #[test]
    fn keys_are_written_in_any_style() {
        let text = "server.port: 1\nserver.max-threads 7\nhosts = a, b\nserver.port = 2";
        let value = decode(text).unwrap();
        assert_eq!(value.server, Server { port: 2, max_threads: Some(7) });
        assert_eq!(value.hosts, ["a", "b"]);
    }

    #[test]
    fn an_error_names_the_line_and_the_key_and_nothing_of_the_value() {
        let deep = format!("{}a = 1", "a.".repeat(64));
        for (text, summary) in [
            ("", "key \"server\" must have a value"),
            ("server.a=1", "key \"server.port\" must have a value"),
            (
                "# comment\n\nserver.port = secret",
                "key \"server.port\" in line 3 must be an integer from 0 to 65535",
            ),
            ("server.port = \\u12x secret", "line 1: \\u must be followed by four hexadecimal digits"),
            ("a = 1 \\\n b\r\nc = \\ud83d", "line 3: \\ud800 to \\udfff must be pairs of surrogates"),
            (deep.as_str(), "the key in line 1 must have at most 64 levels"),
        ] {
            let error = decode(text).unwrap_err();
            assert_eq!(error.to_string(), summary, "{text}");
            assert!(!format!("{error:?}").contains("secret"));
        }
        let error = decode("server.port = secret").unwrap_err();
        assert!(error.detail().unwrap().contains("\"secret\""));
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error() {
        check_any_bytes(&Properties, b"ab.[]01=: #!\\u\n\r\t\x0c\xe4\xff\x00");
    }
}
