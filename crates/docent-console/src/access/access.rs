use super::error::AccessError;
use super::secret::Secret;
use super::secret_file;
use std::path::Path;

/// Minimum length of a token in bytes.
const SHORTEST_TOKEN: usize = 16;

/// Minimum length of a password in bytes.
const SHORTEST_PASSWORD: usize = 8;

/// Who may use a console.
///
/// Wrong tokens and passwords are answered after half a second. After ten of them in a minute, the address
/// that they came from is answered with 429 until that minute is over, also if it sends correct ones.
/// Browsers that are signed in with a token are not affected. If wrong ones come from more than 1,024
/// addresses in a minute, all further addresses share one limit. Behind a proxy, all browsers have the
/// proxy's address.
///
/// ```
/// # fn example() -> Result<(), docent_console::AccessError> {
/// use docent_console::Access;
///
/// let one_token = Access::token(std::env::var("CONSOLE_TOKEN").unwrap_or_default())?;
/// let users = Access::basic_file("/etc/docent/console-users")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Access(pub(super) Kind);

/// Kind of access.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Open,
    Token(Secret),
    Basic(Vec<(String, Secret)>),
}

impl Access {
    /// Everyone who can connect. A service that mounts the console may restrict access itself.
    pub fn open() -> Self {
        Self(Kind::Open)
    }

    /// Everyone who has this token. Browsers sign in with it on a page, other clients send
    /// `Authorization: Bearer TOKEN`, which `/metrics` and `/api` accept.
    ///
    /// # Errors
    /// `Rule` unless the token has 16 to 512 printable ASCII characters and no spaces.
    pub fn token(token: impl Into<String>) -> Result<Self, AccessError> {
        checked_token(token.into(), || "the token".to_owned())
    }

    /// Like [`token`](Self::token), with the token from a file of one line, which only its owner may read.
    ///
    /// # Errors
    /// Same as [`token`](Self::token); also `Read` and `Mode`.
    pub fn token_file(path: impl AsRef<Path>) -> Result<Self, AccessError> {
        let path = path.as_ref();
        let text = secret_file::read(path)?;
        checked_token(text.trim_end_matches(['\r', '\n']).to_owned(), || format!("the token in {path:?}"))
    }

    /// These users, with passwords, by HTTP basic authentication. Passwords cross the network unless the
    /// console is served by TLS.
    ///
    /// # Errors
    /// `Rule` if there is no user, a name appears twice, is empty, or has a colon or control character, or if
    /// a password has less than 8 or more than 512 bytes or a control character.
    pub fn basic<U: Into<String>, P: Into<String>>(
        users: impl IntoIterator<Item = (U, P)>,
    ) -> Result<Self, AccessError> {
        let users = users.into_iter().map(|(user, password)| {
            let user = user.into();
            (format!("user {user:?}"), user, password.into())
        });
        checked_users(users, || "the list of users".to_owned())
    }

    /// Like [`basic`](Self::basic), with users from a file that only its owner may read: a line
    /// `user:password` for each. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Same as [`basic`](Self::basic); also `Read` and `Mode`.
    pub fn basic_file(path: impl AsRef<Path>) -> Result<Self, AccessError> {
        let path = path.as_ref();
        let text = secret_file::read(path)?;
        let mut users = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("line {} of {path:?}", index + 1);
            let Some((user, password)) = line.split_once(':') else {
                return Err(AccessError::Rule { place, rule: "must have the form user:password" });
            };
            users.push((place, user.to_owned(), password.to_owned()));
        }
        checked_users(users, || format!("{path:?}"))
    }
}

impl Default for Access {
    fn default() -> Self {
        Self::open()
    }
}

fn checked_token(token: String, place: impl Fn() -> String) -> Result<Access, AccessError> {
    let rule = match token.len() {
        ..SHORTEST_TOKEN => "must have at least 16 characters",
        length if length > Secret::LONGEST => "must have at most 512 characters",
        _ if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            "must be one line of printable ASCII characters without spaces"
        }
        _ => return Ok(Access(Kind::Token(Secret::new(token)))),
    };
    Err(AccessError::Rule { place: place(), rule })
}

fn checked_users(
    users: impl IntoIterator<Item = (String, String, String)>,
    list: impl Fn() -> String,
) -> Result<Access, AccessError> {
    let mut known: Vec<(String, Secret)> = Vec::new();
    for (place, user, password) in users {
        if let Err(rule) = check_user(&user, &password) {
            return Err(AccessError::Rule { place, rule });
        }
        if known.iter().any(|(other, _)| *other == user) {
            return Err(AccessError::Rule { place, rule: "names a user that appears before" });
        }
        known.push((user, Secret::new(password)));
    }
    match known.is_empty() {
        true => Err(AccessError::Rule { place: list(), rule: "must have at least one user" }),
        false => Ok(Access(Kind::Basic(known))),
    }
}

fn check_user(user: &str, password: &str) -> Result<(), &'static str> {
    match () {
        () if user.is_empty() => Err("must have a user name"),
        () if user.contains(':') => Err("must have no colon in the user name"),
        () if user.len() > Secret::LONGEST => Err("must have at most 512 bytes in the user name"),
        () if user.chars().chain(password.chars()).any(char::is_control) => {
            Err("must have no control characters")
        }
        () if password.len() < SHORTEST_PASSWORD => Err("must have a password of at least 8 bytes"),
        () if password.len() > Secret::LONGEST => Err("must have a password of at most 512 bytes"),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    const TOKEN: &str = "0123456789abcdef";

    fn file(folder: &tempfile::TempDir, text: &str, mode: u32) -> PathBuf {
        let path = folder.path().join(format!("{mode:o}"));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn message(access: Result<Access, AccessError>) -> String {
        let error = access.unwrap_err();
        assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
        error.to_string()
    }

    #[test]
    fn a_token_file_has_one_line_that_only_its_owner_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| Access::token_file(file(&folder, text, 0o600));
        for good in [format!("{TOKEN}\n"), format!("{TOKEN}\r\n"), TOKEN.to_owned()] {
            let Kind::Token(token) = read(&good).unwrap().0 else { panic!("{good:?}") };
            assert!(token.matches(TOKEN), "{good:?}");
        }
        assert!(message(read("sesame\n")).contains("at least 16 characters"));
        assert!(message(read("sesame sesame sesame\n")).contains("without spaces"));
        assert!(message(read(&format!("{TOKEN}\n{TOKEN}\n"))).contains("one line"));
        assert!(message(read(&"sesame".repeat(100))).contains("at most 512"));
        assert!(message(read(&"\n".repeat(70_000))).contains("larger than 64 KiB"));
        for mode in [0o640, 0o604, 0o620, 0o610] {
            let text = message(Access::token_file(file(&folder, TOKEN, mode)));
            assert!(text.contains(&format!("has mode 0{mode:o}")) && text.contains("chmod 600"), "{text}");
        }
        assert!(Access::token_file(file(&folder, TOKEN, 0o400)).is_ok());
        let missing = message(Access::token_file(folder.path().join("missing")));
        assert!(missing.contains("missing") && missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn a_file_of_users_has_comments_and_errors_that_name_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| Access::basic_file(file(&folder, text, 0o600));
        let Kind::Basic(users) = read("# staff\n\nann:sesame:sesame\nbob: sesame #1 \n").unwrap().0 else {
            panic!("users")
        };
        assert!(users[0].0 == "ann" && users[0].1.matches("sesame:sesame"), "{users:?}");
        assert!(users[1].0 == "bob" && users[1].1.matches(" sesame #1 "), "{users:?}");
        for (text, part) in [
            ("# nobody\n", "at least one user"),
            ("ann:sesame-sesame\nsesame-sesame\n", "line 2"),
            ("ann:sesame\n", "at least 8 bytes"),
            (":sesame-sesame\n", "must have a user name"),
            ("ann:sesame-sesame\n\nann:sesame-sesame\n", "line 3"),
            ("a\tb:sesame-sesame\n", "no control characters"),
        ] {
            assert!(message(read(text)).contains(part), "{text:?}: {}", message(read(text)));
        }
        assert!(message(Access::basic_file(file(&folder, "ann:sesame-sesame", 0o644))).contains("mode 0644"));
        assert!(message(Access::basic([("a:b", "sesame-sesame")])).contains("no colon"));
    }
}
