use clap::Args;

/// List the sessions that own ephemeral nodes: what each holds, leads, waits for, announces and claims, and
/// so what ends with it.
///
/// A session without ephemeral nodes below ROOT is not listed, because other clients cannot see it. Nodes
/// that clients keep for themselves in folders named _docent are not listed.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path to start at, and a session such as 0x10000a3f, to show only that one with all its nodes
    #[arg(value_name = "ROOT] [SESSION", num_args = 0..=2)]
    words: Vec<String>,

    /// Maximum number of nodes to read
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub(super) nodes: usize,
}

impl Arguments {
    /// Returns the path to start at and the session to show, `None` for all.
    ///
    /// # Errors
    /// The rule that the words break.
    pub(super) fn selection(&self) -> Result<(&str, Option<i64>), String> {
        match &self.words[..] {
            [] => Ok(("/", None)),
            [word] if word.starts_with('/') => Ok((word, None)),
            [word] => Ok(("/", Some(session(word)?))),
            [root, word, ..] => Ok((root, Some(session(word)?))),
        }
    }
}

/// Parses a session as the servers print it. Its number is a bit pattern, so the highest bit may be set.
fn session(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
    let rule = || format!("{text:?} must be a path, or a session such as 0x10000a3f");
    digits.and_then(Result::ok).map(u64::cast_signed).ok_or_else(rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        sessions: Arguments,
    }

    #[test]
    fn root_and_session_are_both_optional() {
        let selection = |words: &[&str]| {
            let command = Command::parse_from(["sessions"].iter().chain(words));
            command.sessions.selection().map(|(root, session)| (root.to_owned(), session))
        };
        assert_eq!(selection(&[]), Ok(("/".into(), None)));
        assert_eq!(selection(&["/shop"]), Ok(("/shop".into(), None)));
        assert_eq!(selection(&["0x1f"]), Ok(("/".into(), Some(31))));
        assert_eq!(selection(&["/shop", "0xffffffffffffffff"]), Ok(("/shop".into(), Some(-1))));
        assert!(selection(&["31"]).unwrap_err().contains("such as 0x"));
        assert!(selection(&["/shop", "/else"]).is_err());
    }
}
