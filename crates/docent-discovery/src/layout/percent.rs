//! Percent-encoding as Java's `URLEncoder` does it, which Dubbo uses for names of nodes.

use std::fmt::Write;

/// Letters, digits and `.-*_` stay, a space becomes `+`, other bytes of the UTF-8 become `%XX`.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => write!(out, "%{byte:02X}").expect("a string takes all text"),
        }
    }
    out
}

/// `None` for what [`encode`] cannot have made.
pub(super) fn decode(text: &str) -> Option<String> {
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

/// Escapes what would end a parameter of a URL, and nothing else: Dubbo writes and reads parameters as they
/// are.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '%' | '&' | '=' | '#' | '?' => {
                write!(out, "%{:02X}", u32::from(char)).expect("a string takes all text");
            }
            char => out.push(char),
        }
    }
    out
}

/// Undoes [`escape`]; text that it cannot have made stays as it is.
pub(super) fn unescape(text: &str) -> String {
    decode(&text.replace('+', "%2B")).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_what_java_writes() {
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
        fn what_is_escaped_can_be_unescaped(text in ".*") {
            prop_assert_eq!(unescape(&escape(&text)), text);
        }

        #[test]
        fn what_is_encoded_can_be_decoded_and_be_a_node(text in ".*") {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
            prop_assert_eq!(decode(&encoded), Some(text));
        }
    }
}
