use crate::Limits;
use std::time::Duration;

/// A limit with a command-line option of the same name.
pub(super) struct Limit {
    pub(super) name: &'static str,
    text: &'static str,
    field: Field,
}

/// Accessor of a [`Limits`] field, by the unit of its value.
enum Field {
    Bytes(fn(&mut Limits) -> &mut usize),
    Count(fn(&mut Limits) -> &mut usize),
    Time(fn(&mut Limits) -> &mut Duration),
}

macro_rules! limits {
    ($($name:literal = $kind:ident($field:ident), $text:literal;)+) => {
        /// All limits, in the order of the fields of [`Limits`].
        const LIMITS: &[Limit] = &[$(
            Limit { name: $name, text: $text, field: Field::$kind(|limits| &mut limits.$field) },
        )+];
    };
}

limits! {
    "frame-bytes" = Bytes(frame_bytes), "Maximum size of a request";
    "reply-bytes" = Bytes(reply_bytes), "Maximum size of a reply";
    "connections" = Count(connections), "Maximum open connections";
    "sessions" = Count(sessions), "Maximum live sessions";
    "nodes" = Count(nodes), "Maximum nodes";
    "total-bytes" = Bytes(total_bytes), "Maximum size of all nodes";
    "acl-bytes" = Bytes(acl_bytes), "Maximum size of an access control list";
    "auth-bytes-per-connection" = Bytes(auth_bytes_per_connection), "Maximum identities of a connection";
    "watches-per-connection" = Count(watches_per_connection), "Maximum watches of a connection";
    "watch-bytes-per-connection" = Bytes(watch_bytes_per_connection), "Maximum watches of a connection";
    "watch-bytes" = Bytes(watch_bytes), "Maximum watches of all connections";
    "requests-per-connection" = Count(requests_per_connection), "Maximum unanswered requests of a connection";
    "queued-bytes-per-connection" = Bytes(queued_bytes_per_connection), "Maximum data queued for one connection";
    "queued-bytes" = Bytes(queued_bytes), "Maximum data queued for all connections";
    "events-per-transaction" = Count(events_per_transaction), "Maximum watch events of a transaction";
    "held-bytes" = Bytes(held_bytes), "Requests of followers; not used here";
    "past-bytes" = Bytes(past_bytes), "Past trees of followers; not used here";
    "journal-bytes" = Bytes(journal_bytes), "Journal; not used here";
    "handshake" = Time(handshake), "Time to open a session";
}

/// Returns the limit that the option `name` sets.
pub(super) fn limit(name: &str) -> Option<&'static Limit> {
    LIMITS.iter().find(|limit| limit.name == name)
}

/// Returns the help text of all limits, one line each, with their defaults.
pub(super) fn help() -> String {
    LIMITS.iter().map(Limit::help).collect()
}

impl Limit {
    /// Parses `text` and sets the limit. On failure, returns the rule that `text` violates.
    pub(super) fn set(&self, limits: &mut Limits, text: &str) -> Result<(), &'static str> {
        match self.field {
            Field::Bytes(field) => *field(limits) = bytes(text).ok_or(BYTES)?,
            Field::Count(field) => *field(limits) = text.parse().map_err(|_| COUNT)?,
            Field::Time(field) => *field(limits) = time(text).ok_or(TIME)?,
        }
        Ok(())
    }

    fn help(&self) -> String {
        let mut defaults = Limits::default();
        let (kind, default) = match self.field {
            Field::Bytes(field) => ("BYTES", shown(*field(&mut defaults))),
            Field::Count(field) => ("COUNT", field(&mut defaults).to_string()),
            Field::Time(field) => ("TIME", format!("{:?}", field(&mut defaults))),
        };
        let option = format!("--{} {kind}", self.name);
        format!("      {option:<35} {}; default {default}\n", self.text)
    }
}

const BYTES: &str = "must be a whole number of bytes, or one in KiB, MiB or GiB, such as 64MiB";
const COUNT: &str = "must be a whole number";
pub(super) const TIME: &str = "must be a whole number above 0 in ms, s or m, such as 500ms";

/// Units of byte sizes, largest first.
const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

fn bytes(text: &str) -> Option<usize> {
    let unit = UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = unit.unwrap_or((text, 1));
    number.parse::<usize>().ok()?.checked_mul(size)
}

fn shown(bytes: usize) -> String {
    let unit = UNITS.iter().find(|(_, size)| bytes.is_multiple_of(*size));
    unit.map_or_else(|| bytes.to_string(), |(unit, size)| format!("{}{unit}", bytes / size))
}

/// Parses a duration, which must be above 0.
pub(super) fn time(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u32 = text[..unit].parse().ok()?;
    let unit = match &text[unit..] {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        _ => return None,
    };
    Some(unit.saturating_mul(number)).filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of all `Limits` fields, written as options.
    fn fields() -> Vec<String> {
        let debug = format!("{:#?}", Limits::default());
        let fields = debug.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
        fields.map(|(name, _)| name.replace('_', "-")).collect()
    }

    #[test]
    fn every_limit_has_an_option_of_its_name() {
        let options: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
        assert_eq!(options, fields());
    }

    #[test]
    fn an_option_sets_its_limit_alone() {
        let (mut limits, defaults) = (Limits::default(), Limits::default());
        limit("queued-bytes").unwrap().set(&mut limits, "64MiB").unwrap();
        limit("nodes").unwrap().set(&mut limits, "0").unwrap();
        limit("handshake").unwrap().set(&mut limits, "2s").unwrap();
        let expected = defaults.queued_bytes(64 << 20).nodes(0).handshake(Duration::from_secs(2));
        assert_eq!(limits, expected);
        for (name, text, rule) in [
            ("nodes", "1k", COUNT),
            ("nodes", "-1", COUNT),
            ("queued-bytes", "64MB", BYTES),
            ("queued-bytes", "18014398509481984KiB", BYTES),
            ("handshake", "0s", TIME),
        ] {
            assert_eq!(limit(name).unwrap().set(&mut limits, text), Err(rule), "{name} {text}");
        }
        assert_eq!(limits, expected);
    }

    #[test]
    fn the_help_has_units_and_defaults() {
        let help = help();
        for (option, rest) in [
            ("--queued-bytes BYTES ", " Maximum data queued for all connections; default 512MiB\n"),
            ("--frame-bytes BYTES ", " Maximum size of a request; default 1048575\n"),
            ("--connections COUNT ", " Maximum open connections; default 10000\n"),
            ("--handshake TIME ", " Time to open a session; default 10s\n"),
        ] {
            assert!(help.contains(option) && help.contains(rest), "{option}: {help}");
        }
    }
}
