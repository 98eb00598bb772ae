/// Answer of a port to the four-letter word `srvr`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// A ZooKeeper server described itself.
    Server(Description),
    /// A ZooKeeper server that has the word disabled.
    WordsOff,
    /// A ZooKeeper server that has no quorum.
    NotServing,
    /// Nothing: a server of another protocol waits for more input, or closed the connection.
    Silence,
    /// The first line of an answer that is not ZooKeeper's, at most 60 characters.
    Foreign(String),
}

/// Facts that a server reports by `srvr`. Texts that it does not report are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// `ZooKeeper` or `ClickHouse Keeper`.
    pub software: &'static str,
    /// Version without revision and date, such as `3.8.4`.
    pub version: String,
    /// `leader`, `follower`, `observer`, `standalone` or `read-only`.
    pub mode: String,
    /// Minimum, mean and maximum latency of requests in milliseconds, as the server prints them.
    pub latency: String,
}

/// Start of the answer of a ClickHouse Keeper.
const KEEPER: &str = "ClickHouse Keeper version:";

/// Mode of a server that has lost its quorum and still answers reads.
pub(super) const READ_ONLY: &str = "read-only";

/// Maximum length of the line that is shown of an answer, in characters.
const LONGEST_LINE: usize = 60;

impl Answer {
    /// Recognises the answer to `srvr`.
    pub fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        match () {
            () if bytes.is_empty() => Self::Silence,
            () if text.starts_with("Zookeeper version:") || text.starts_with(KEEPER) => {
                Self::Server(Description::of(&text))
            }
            () if text.contains("is not in the whitelist") => Self::WordsOff,
            () if text.contains("not currently serving requests") => Self::NotServing,
            () => {
                let line = text.lines().next().unwrap_or_default();
                Self::Foreign(line.chars().take(LONGEST_LINE).collect())
            }
        }
    }
}

impl Description {
    pub(super) fn of(text: &str) -> Self {
        let value = |key| value(text, key).unwrap_or_default();
        let (software, version) = match text.starts_with(KEEPER) {
            true => ("ClickHouse Keeper", value(KEEPER).trim_start_matches('v')),
            false => ("ZooKeeper", value("Zookeeper version:")),
        };
        let version = version.split(['-', ',']).next().unwrap_or_default();
        Self {
            software,
            version: version.to_owned(),
            mode: value("Mode:").to_owned(),
            latency: value("Latency min/avg/max:").to_owned(),
        }
    }

    /// Returns true for a server that has lost its quorum and still answers reads.
    pub fn is_read_only(&self) -> bool {
        self.mode == READ_ONLY
    }
}

/// Returns the rest of the first line that starts with `key`, without white space around it.
pub(super) fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRVR: &str = "Zookeeper version: 3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, built on 2024-02-12\n\
        Latency min/avg/max: 0/0.5/12\nReceived: 9\nSent: 8\nConnections: 1\nOutstanding: 0\n\
        Zxid: 0x100000002\nMode: follower\nNode count: 5\n";

    fn description(srvr: &str) -> Description {
        let Answer::Server(description) = Answer::of(srvr.as_bytes()) else {
            panic!("the answer is from a server")
        };
        description
    }

    #[test]
    fn a_server_reports_version_mode_and_latency() {
        let description = description(SRVR);
        assert_eq!(
            (&*description.version, &*description.mode, &*description.latency),
            ("3.8.4", "follower", "0/0.5/12")
        );
        assert!(!description.is_read_only());
    }

    #[test]
    fn a_server_without_a_mode_line_has_an_empty_mode() {
        let description = description("Zookeeper version: 3.5.0\n");
        assert_eq!((&*description.version, &*description.mode), ("3.5.0", ""));
    }

    #[test]
    fn a_clickhouse_keeper_is_told_from_a_zookeeper() {
        let text = "ClickHouse Keeper version: v25.8.1.1-prestable-7a4a\nMode: standalone\n";
        let Description { software, version, mode, .. } = description(text);
        assert_eq!((software, &*version, &*mode), ("ClickHouse Keeper", "25.8.1.1", "standalone"));
    }

    #[test]
    fn other_answers_are_distinguished() {
        let off = b"srvr is not executed because it is not in the whitelist.\n";
        assert_eq!(Answer::of(off), Answer::WordsOff);
        let no_quorum = b"This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(Answer::of(no_quorum), Answer::NotServing);
        assert_eq!(Answer::of(b""), Answer::Silence);
        assert_eq!(
            Answer::of(b"HTTP/1.1 400 Bad Request\r\n"),
            Answer::Foreign("HTTP/1.1 400 Bad Request".into())
        );
    }

    #[test]
    fn a_foreign_answer_is_truncated() {
        let Answer::Foreign(line) = Answer::of(&[b'x'; 5_000]) else {
            panic!("the answer is not ZooKeeper's")
        };
        assert_eq!(line.len(), LONGEST_LINE);
        assert!(matches!(Answer::of(&[0xff, 0xfe, 0]), Answer::Foreign(_)));
    }
}
