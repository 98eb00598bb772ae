//! File with the users of SASL. A command line would show their passwords to other users of the machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest accepted file in bytes.
const LARGEST_FILE: u64 = 64 * 1024;

/// Reads users and their passwords from a file with one `user:password` per line. Empty lines are skipped.
///
/// # Errors
/// Returns the rule that the file violates, with the number of the line. It repeats nothing of the content.
pub(super) fn read(file: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut text = String::new();
    // Limited while it is read, because a pipe has no length.
    let read = File::open(file).and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(format!("must be readable: {error}")),
        Ok(length) if length as u64 > LARGEST_FILE => Err(format!("must have at most {LARGEST_FILE} bytes")),
        Ok(_) => parse(&text),
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut users = BTreeMap::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.is_empty()) {
        match line.split_once(':') {
            Some((user, password)) if !user.is_empty() => {
                if users.insert(user.to_owned(), password.to_owned()).is_some() {
                    return Err(format!("must name each user once, and line {number} repeats one"));
                }
            }
            _ => return Err(format!("must have user:password in line {number}")),
        }
    }
    if users.is_empty() { Err("must have at least one line of user:password".to_owned()) } else { Ok(users) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_may_contain_colons_and_spaces() {
        let users = parse("me:a: b \r\n\nyou:\n").unwrap();
        let expected = [("me", "a: b "), ("you", "")];
        assert!(users.iter().map(|(user, password)| (&**user, &**password)).eq(expected));
    }

    #[test]
    fn a_refusal_names_the_line_and_repeats_nothing_of_it() {
        for (text, rule) in [
            ("me:right\nsecret", "must have user:password in line 2"),
            ("\n\n:secret", "must have user:password in line 3"),
            ("me:secret\nyou:x\nme:other", "must name each user once, and line 3 repeats one"),
            ("\n", "must have at least one line of user:password"),
        ] {
            assert_eq!(parse(text).unwrap_err(), rule);
        }
    }

    #[test]
    fn a_file_has_a_largest_size() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let longest = format!("me:{}", "x".repeat(LARGEST_FILE as usize - 3));
        std::fs::write(file.path(), &longest).unwrap();
        assert_eq!(read(file.path()).unwrap().len(), 1);
        std::fs::write(file.path(), longest + "x").unwrap();
        assert_eq!(read(file.path()).unwrap_err(), "must have at most 65536 bytes");
    }
}
