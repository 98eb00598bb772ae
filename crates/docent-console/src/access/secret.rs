use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::SysRng;
use std::fmt;
use subtle::ConstantTimeEq;

/// A token or password, which is compared in constant time and never printed.
#[derive(Clone)]
pub(super) struct Secret(String);

impl Secret {
    /// Maximum length in bytes.
    pub(super) const LONGEST: usize = 512;

    /// Wraps a text of at most [`LONGEST`](Self::LONGEST) bytes.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns 256 bits from the operating system, as 43 letters, digits, `-` and `_`.
    pub(super) fn random() -> Self {
        let mut bytes = [0; 32];
        SysRng.try_fill_bytes(&mut bytes).expect("the operating system provides random numbers");
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns true if `text` is the secret. The time depends neither on the secret nor on its length.
    pub(super) fn matches(&self, text: &str) -> bool {
        let is_equal = padded(&self.0).ct_eq(&padded(text));
        // Padding must not make a shorter text equal, nor the cut a longer one.
        bool::from(is_equal & self.0.len().ct_eq(&text.len()))
    }

    /// Returns the text, to be sent to the browser that it belongs to.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

fn padded(text: &str) -> [u8; Secret::LONGEST] {
    let mut padded = [0; Secret::LONGEST];
    padded.iter_mut().zip(text.as_bytes()).for_each(|(to, from)| *to = *from);
    padded
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_equals_only_itself_and_is_not_printed() {
        let secret = Secret::new("sesame-sesame-sesame");
        assert!(secret.matches("sesame-sesame-sesame"));
        for wrong in ["", "sesame", "sesame-sesame-sesame\0", "sesame-sesame-sesamE"] {
            assert!(!secret.matches(wrong), "{wrong:?}");
        }
        let longest = "x".repeat(Secret::LONGEST);
        assert!(Secret::new(&*longest).matches(&longest));
        assert!(!Secret::new(&*longest).matches(&format!("{longest}y")));
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }

    #[test]
    fn random_secrets_have_256_bits_and_differ() {
        let (first, second) = (Secret::random(), Secret::random());
        assert_eq!(URL_SAFE_NO_PAD.decode(first.expose()).unwrap().len(), 32);
        assert!(!first.matches(second.expose()));
    }
}
