use crate::run::Run;
use std::fmt::{self, Write};

/// Hash of a run. It is equal for runs with the same events at the same times, on every machine and with
/// every build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

/// The hash function FNV-1a, 64 bits.
struct Fnv(u64);

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
        Ok(())
    }
}

impl Run {
    /// The hash of the recorded events, the committed changes and what watchers received.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Fnv(OFFSET);
        for event in &self.events {
            let (at, client, kind) = (event.at.as_nanos(), event.client, &event.kind);
            let _ = writeln!(hash, "{at} {client:?} {kind:?}");
        }
        for change in &self.journal {
            let _ = writeln!(hash, "{change:?}");
        }
        for link in &self.facts.watchers {
            let _ = writeln!(hash, "{link:?}");
        }
        Fingerprint(hash.0)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::HistoryBuilder;
    use std::time::Duration;

    #[test]
    fn the_function_is_the_published_one() {
        let mut hash = Fnv(OFFSET);
        hash.write_str("foobar").unwrap();
        assert_eq!(Fingerprint(hash.0).to_string(), "85944171f73967e8");
    }

    #[test]
    fn every_event_and_change_counts() {
        let run = HistoryBuilder::good().run();
        let hash = run.fingerprint();
        assert_eq!(hash, run.clone().fingerprint());
        let mut other = run.clone();
        other.events[3].at += Duration::from_nanos(1);
        assert_ne!(hash, other.fingerprint());
        let mut other = run.clone();
        other.journal.pop();
        assert_ne!(hash, other.fingerprint());
        let mut other = run;
        other.events.swap(1, 2);
        assert_ne!(hash, other.fingerprint());
    }
}
