//! Names of queue items in layouts other than Docent's.

/// Position of an item in its queue, lowest first.
pub(super) type Place = (i64, i64);

/// Name of an item of one of Curator's queues: plain, or with an id, a time or a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CuratorName<'a> {
    /// The whole name.
    pub(super) text: &'a str,
    /// Text between the bars: an id, or the time of a delay.
    pub(super) field: Option<&'a str>,
    pub(super) priority: Option<i32>,
    /// Number that the servers appended.
    pub(super) number: i32,
}

impl<'a> CuratorName<'a> {
    /// Parses the name of an item. Returns `None` for other names.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("queue-")?;
        let plain = |number| Self { text, field: None, priority: None, number };
        if let Some(number) = digits(rest) {
            return Some(plain(number));
        }
        if let Some((field, number)) = rest.strip_prefix('|').and_then(|rest| rest.rsplit_once('|')) {
            return Some(Self { field: Some(field), ..plain(digits(number)?) });
        }
        let priority = priority(rest.get(..9)?)?;
        Some(Self { priority: Some(priority), ..plain(digits(rest.get(9..)?)?) })
    }

    /// Returns the time from which a delayed item may be delivered, in milliseconds since 1970.
    pub(super) fn time(&self) -> Option<u64> {
        time(self.field?)
    }
}

/// Returns true if the fields in these names are times rather than ids: all are numbers in Curator's format
/// for times, and at least one has a digit from A to F. Times of the years 2026 to 2037 have such a digit in
/// second place.
pub(super) fn are_times(names: &[CuratorName<'_>]) -> bool {
    let mut fields = names.iter().filter_map(|name| name.field);
    let has_letter = |field: &str| field.bytes().any(|byte| byte.is_ascii_uppercase());
    fields.clone().all(|field| time(field).is_some()) && fields.any(has_letter)
}

/// Parses a priority as Curator writes it: a digit for the sign, and 32 bits in hexadecimal digits.
fn priority(text: &str) -> Option<i32> {
    let (sign, digits) = (text.get(..1)?, text.get(1..)?);
    let priority = u32::from_str_radix(digits, 16).ok()?.cast_signed();
    let is_signed = is_upper_hex(digits) && matches!((sign, priority < 0), ("1", false) | ("0", true));
    is_signed.then_some(priority)
}

/// Parses the name of an item of kazoo's queues: `entry-<priority>-<number>`.
pub(super) fn kazoo(name: &str) -> Option<Place> {
    let (priority, number) = name.strip_prefix("entry-")?.split_once('-')?;
    let is_priority = priority.len() == 3 && priority.bytes().all(|byte| byte.is_ascii_digit());
    is_priority.then(|| Some((priority.parse().ok()?, digits(number)?.into())))?
}

/// Parses a time in milliseconds since 1970, in hexadecimal digits as Curator's delay queue writes it. A
/// number outside the range of Java's `long` is not a time.
fn time(text: &str) -> Option<u64> {
    let is_time = text.len() >= 8 && is_upper_hex(text);
    is_time.then(|| i64::from_str_radix(text, 16).ok()?.try_into().ok())?
}

fn is_upper_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte))
}

/// Parses the number that the servers append.
fn digits(number: &str) -> Option<i32> {
    docent_queue::internals::number(number, "")
}
