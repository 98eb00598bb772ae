use crate::run::Record;
use crate::script::Operation;
use std::collections::BTreeMap;
use std::fmt;

/// Number of replies to each operation, and of events of each kind, that a server sent to scripts.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// Successes and failures, by operation.
    replies: BTreeMap<String, (u64, u64)>,
    events: BTreeMap<String, u64>,
}

impl Coverage {
    /// Counts the replies and events of a record.
    pub fn add(&mut self, record: &Record) {
        for line in record.lines() {
            let mut words = line.split_whitespace().skip(1);
            match (line.starts_with("  "), words.next(), words.next()) {
                (true, Some("!"), Some(kind)) => *self.events.entry(kind.to_owned()).or_default() += 1,
                (true, Some(operation), Some(code)) if Operation::find(operation).is_some() => {
                    self.reply(operation, code);
                }
                _ => {}
            }
        }
    }

    fn reply(&mut self, operation: &str, code: &str) {
        let Ok(code) = code.parse::<i32>() else { return };
        let (good, bad) = self.replies.entry(operation.to_owned()).or_default();
        *if code == 0 { good } else { bad } += 1;
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replies = self.replies.iter().map(|(name, (good, bad))| format!("{name} {good}/{bad}"));
        let events = self.events.iter().map(|(kind, count)| format!("{kind} {count}"));
        writeln!(f, "answered/refused: {}", replies.collect::<Vec<_>>().join(", "))?;
        write!(f, "events: {}", events.collect::<Vec<_>>().join(", "))
    }
}
