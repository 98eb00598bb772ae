use docent_core::Error;

/// Maximum length of a service name, id or address in bytes.
const LONGEST: usize = 1024;

/// Checks that `text` can be the name of a node, and is suitable for settings files. `what` names it in the
/// error.
pub(crate) fn segment(what: &str, text: &str) -> Result<(), Error> {
    let rule = if text.is_empty() {
        "must not be empty".to_owned()
    } else if text.len() > LONGEST {
        return refuse(format!("{what} of {} bytes must be at most {LONGEST} bytes long", text.len()));
    } else if text == "." || text == ".." {
        "must not be \".\" or \"..\"".to_owned()
    } else if text.contains('/') {
        "must not contain '/'".to_owned()
    } else if text.chars().any(char::is_whitespace) {
        "must not contain spaces".to_owned()
    } else if text.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else {
        return Ok(());
    };
    refuse(format!("{what} {text:?} {rule}"))
}

/// Checks that `text` can be a host name or an IP address.
pub(crate) fn address(text: &str) -> Result<(), Error> {
    segment("address", text)
}

fn refuse(detail: String) -> Result<(), Error> {
    Err(Error::invalid_input("register", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_name_is_named_with_its_rule() {
        for (text, rule) in [
            ("", "must not be empty"),
            (".", "must not be \".\" or \"..\""),
            ("..", "must not be \".\" or \"..\""),
            ("a/b", "must not contain '/'"),
            ("a b", "must not contain spaces"),
            ("a\u{a0}b", "must not contain spaces"),
            ("a\u{1}b", "must not contain control characters"),
        ] {
            let error = segment("service name", text).unwrap_err().to_string();
            assert_eq!(error, format!("register: service name {text:?} {rule}"));
        }
        let long = segment("id", &"x".repeat(1025)).unwrap_err().to_string();
        assert_eq!(long, "register: id of 1025 bytes must be at most 1024 bytes long");
        for text in ["orders", "com.shop.Orders:1.0", "ünïcode", "100%", "_", "x".repeat(1024).as_str()] {
            segment("id", text).unwrap();
        }
    }
}
