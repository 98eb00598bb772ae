use crate::Limits;
use std::time::Duration;

/// A limit that can be set by the option of its name.
pub(super) struct Limit {
    pub(super) name: &'static str,
    text: &'static str,
    field: Field,
}

/// Field of [`Limits`].
enum Field {
    Bytes(fn(&mut Limits) -> &mut usize),
    Count(fn(&mut Limits) -> &mut usize),
    Time(fn(&mut Limits) -> &mut Duration),
}

macro_rules! limits {
    ($($name:literal = $kind:ident($field:ident), $text:literal;)+) => {
        /// All limits, in the order of their fields.
        const LIMITS: &[Limit] = &[$(
            Limit { name: $name, text: $text, field: Field::$kind(|limits| &mut limits.$field) },
        )+];
    };
}

limits! {
    "frame-bytes" = Bytes(frame_bytes), "Longest request";
    "reply-bytes" = Bytes(reply_bytes), "Longest reply";
    "connections" = Count(connections), "Open connections";
    "sessions" = Count(sessions), "Living sessions";
    "nodes" = Count(nodes), "Nodes";
    "total-bytes" = Bytes(total_bytes), "Data, paths and lists of all nodes";
    "acl-bytes" = Bytes(acl_bytes), "One access control list";
    "auth-bytes-per-connection" = Bytes(auth_bytes_per_connection), "Identities of one connection";
    "watches-per-connection" = Count(watches_per_connection), "Watches of one connection";
    "watch-bytes-per-connection" = Bytes(watch_bytes_per_connection), "Watches of one connection";
    "watch-bytes" = Bytes(watch_bytes), "Watches of all connections";
    "requests-per-connection" = Count(requests_per_connection), "Unanswered requests of one connection";
    "queued-bytes-per-connection" = Bytes(queued_bytes_per_connection), "What one client has not read yet";
    "queued-bytes" = Bytes(queued_bytes), "What all clients have not read yet";
    "events-per-transaction" = Count(events_per_transaction), "Watch events of one transaction";
    "held-bytes" = Bytes(held_bytes), "Requests held by followers; none here";
    "past-bytes" = Bytes(past_bytes), "Trees for followers; none here";
    "journal-bytes" = Bytes(journal_bytes), "Journal; none here";
    "handshake" = Time(handshake), "Time for a new connection to open a session";
}

/// The limit of an option.
pub(super) fn limit(name: &str) -> Option<&'static Limit> {
    LIMITS.iter().find(|limit| limit.name == name)
}

/// Help of all options, one line for each, with defaults.
pub(super) fn help() -> String {
    LIMITS.iter().map(Limit::help).collect()
}

impl Limit {
    /// Sets the limit, or returns the rule that the text breaks.
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

const BYTES: &str = "must be a whole number of bytes, or one with KiB, MiB or GiB, such as 64MiB";
const COUNT: &str = "must be a whole number";
pub(super) const TIME: &str = "must be a whole number above 0 with ms, s or m, such as 500ms";

/// Units of bytes, the largest first.
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

/// A duration above 0.
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

    /// The names of the fields, as options.
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
            ("--queued-bytes BYTES ", " What all clients have not read yet; default 512MiB\n"),
            ("--frame-bytes BYTES ", " Longest request; default 1048575\n"),
            ("--connections COUNT ", " Open connections; default 10000\n"),
            ("--handshake TIME ", " Time for a new connection to open a session; default 10s\n"),
        ] {
            assert!(help.contains(option) && help.contains(rest), "{option}: {help}");
        }
    }
}
