//! Percent-encoding like Java's `URLEncoder`, which Dubbo uses for node names.

use std::fmt::Write;

/// Encodes text. Letters, digits and `.-*_` stay, a space becomes `+`, and other bytes of the UTF-8 encoding
/// become `%XX`.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => write!(out, "%{byte:02X}").expect("a string accepts all text"),
        }
    }
    out
}

/// Decodes the name of a node in Dubbo's layout. Returns `None` for text that is not so encoded.
pub fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

/// Escapes only the characters that would end a parameter of a URL: Dubbo does not encode parameters.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '%' | '&' | '=' | '#' | '?' => {
                write!(out, "%{:02X}", u32::from(char)).expect("a string accepts all text");
            }
            char => out.push(char),
        }
    }
    out
}

/// Reverses [`escape`]; other text stays unchanged.
pub(super) fn unescape(text: &str) -> String {
    decode(&text.replace('+', "%2B")).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_encoding_is_javas() {
        let url = "dubbo://10.0.0.7:20880/com.shop.Orders?a=b c&ü=*-_.~";
        let node = "dubbo%3A%2F%2F10.0.0.7%3A20880%2Fcom.shop.Orders%3Fa%3Db+c%26%C3%BC%3D*-_.%7E";
        assert_eq!(encode(url), node);
        assert_eq!(decode(node).as_deref(), Some(url));
        assert_eq!(decode("%3a"), Some(":".to_owned()));
        for bad in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn parameters_are_as_dubbo_writes_them() {
        assert_eq!(escape("a b+c&d=e%f"), "a b+c%26d%3De%25f");
        assert_eq!(unescape("1.0+b%26"), "1.0+b&");
        assert_eq!(unescape("100%"), "100%");
    }

    proptest! {
        #[test]
        fn escaping_is_reversible(text in ".*") {
            prop_assert_eq!(unescape(&escape(&text)), text);
        }

        #[test]
        fn an_encoded_text_is_a_valid_node_name_and_decodes_to_itself(text in ".*") {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
            prop_assert_eq!(decode(&encoded), Some(text));
        }
    }
}
