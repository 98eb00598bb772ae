use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Maximum length in bytes.
const LONGEST: usize = 2_048;

/// Characters that have no meaning in a value of a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns `path` if a browser that is sent there stays on this console, `/` otherwise. Browsers read
/// `//host` and `/\host` as another host, and skip control characters.
pub(super) fn local_path(path: &str) -> &str {
    let is_local = path.starts_with('/') && !path.starts_with("//") && path.len() <= LONGEST;
    match is_local && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        true => path,
        false => "/",
    }
}

/// Returns `path` encoded as a value of a query.
pub(super) fn as_value(path: &str) -> String {
    utf8_percent_encode(path, PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_paths_are_accepted() {
        for good in ["/", "/locks?q=a&sort=age", "/at/shop/l%20ck", "/%2f/evil"] {
            assert_eq!(local_path(good), good);
        }
        let long = format!("/{}", "a".repeat(LONGEST));
        for bad in [
            "",
            "evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\r\nSet-Cookie: a=b",
            "/a\u{7f}",
            "/ä",
            "/a b",
            &long,
        ] {
            assert_eq!(local_path(bad), "/", "{bad:?}");
        }
        assert_eq!(as_value("/a?q=b&c#d"), "/a%3Fq%3Db%26c%23d");
    }
}
