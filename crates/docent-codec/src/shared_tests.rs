//! What holds for all codecs of text formats.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::Codec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Access {
    Public,
    Limited { per_second: u32 },
    Groups(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    name: String,
    port: u16,
    low: i64,
    ratio: f64,
    small: f32,
    enabled: bool,
    letter: char,
    missing: Option<u32>,
    present: Option<String>,
    hosts: Vec<String>,
    grid: Vec<Vec<u8>>,
    access: Vec<Access>,
    labels: BTreeMap<String, String>,
    nothing: BTreeMap<String, u8>,
    pair: (u8, bool),
    below: Option<Box<Settings>>,
}

fn settings(text: &str) -> Settings {
    let text = text.to_owned();
    Settings {
        name: text.clone(),
        port: u16::MAX,
        low: i64::MIN,
        ratio: 0.1,
        small: -1.5e-7,
        enabled: true,
        letter: '\u{1f600}',
        missing: None,
        present: Some(text.clone()),
        hosts: vec![text.clone(), String::new(), "a, b".to_owned()],
        grid: vec![vec![1, 2], vec![], vec![3]],
        access: vec![Access::Public, Access::Limited { per_second: 3 }, Access::Groups(vec![text.clone()])],
        labels: [("a.b", ""), ("", "empty"), ("0", "1"), ("k\u{e4}=: #", "x")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into_iter()
            .chain([("text".to_owned(), text)])
            .collect(),
        nothing: BTreeMap::new(),
        pair: (7, false),
        below: None,
    }
}

/// Checks that values of all types are the same after they were encoded and decoded.
pub(crate) fn check_round_trips(codec: &impl Codec<Settings>) {
    for text in [
        "",
        "plain",
        " spaces ",
        "\t\u{c}",
        "yes",
        "1",
        "1.0",
        "null",
        "~",
        "# no comment",
        "!x",
        "a: b",
        "a=b",
        "\\",
        "\\u00e4",
        "line\nline\r\nline\r",
        "\u{e4}\u{20ac}\u{1f600}",
        "\u{7f}\u{85}\u{2028}",
        "'\"`",
        "${x}",
        "[0]",
        "{}",
        "- a",
        "---",
    ] {
        let mut value = settings(text);
        value.below = Some(Box::new(settings(text)));
        let data = codec.encode(&value).unwrap();
        assert_eq!(codec.decode(&data).unwrap(), value, "{text:?} in {data:?}");
    }
}

/// Returns an array in an array, and so on.
#[cfg(any(feature = "toml", feature = "yaml"))]
pub(crate) fn nested(levels: usize) -> Value {
    (1..levels).fold(Value::Array(Vec::new()), |inside, _| Value::Array(vec![inside]))
}

/// Decodes random bytes of the alphabet. A panic fails the test, and data that is decoded can be encoded.
pub(crate) fn check_any_bytes(codec: &impl Codec<Value>, alphabet: &[u8]) {
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..3_000_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let data: Vec<u8> = (0..seed % 40)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                alphabet[usize::try_from(state % alphabet.len() as u64).unwrap()]
            })
            .collect();
        match codec.decode(&data.into()) {
            Ok(_) => valid += 1,
            Err(_) => invalid += 1,
        }
    }
    assert!(valid > 0 && invalid > 0, "{valid} values and {invalid} errors");
}
