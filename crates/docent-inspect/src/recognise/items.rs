//! Names of the items of queues that are no Docent's.

/// Place of an item in its queue, lowest first.
pub(super) type Place = (i64, i64);

/// Item of one of Curator's queues: plain ones and those with an id, a priority or a time in the name.
/// Items without a priority or a time have 0 for it. `None` for names of others.
pub(super) fn curator(name: &str) -> Option<Place> {
    let rest = name.strip_prefix("queue-")?;
    if let Some(number) = digits(rest) {
        return Some((0, number));
    }
    if let Some((field, number)) = rest.strip_prefix('|').and_then(|rest| rest.rsplit_once('|')) {
        return Some((time(field).unwrap_or(0), digits(number)?));
    }
    curator_priority(name)
}

/// Item of Curator's queue with priorities: its priority and number.
pub(super) fn curator_priority(name: &str) -> Option<Place> {
    let rest = name.strip_prefix("queue-")?;
    let sign = rest.get(..1)?;
    let priority = u32::from_str_radix(rest.get(1..9)?, 16).ok()?;
    let is_signed = matches!((sign, priority >> 31), ("1", 0) | ("0", 1));
    is_signed.then(|| Some((i64::from(priority.cast_signed()), digits(rest.get(9..)?)?)))?
}

/// Item of kazoo's queues: `entry-<priority>-<number>`.
pub(super) fn kazoo(name: &str) -> Option<Place> {
    let (priority, number) = name.strip_prefix("entry-")?.split_once('-')?;
    let is_priority = priority.len() == 3 && priority.bytes().all(|byte| byte.is_ascii_digit());
    is_priority.then(|| Some((priority.parse().ok()?, digits(number)?)))?
}

/// Time in milliseconds since 1970, in upper-case hexadecimal digits as Curator's delay queue writes it.
fn time(text: &str) -> Option<i64> {
    let upper = |byte: u8| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte);
    let is_time = text.len() >= 8 && text.bytes().all(upper);
    is_time.then(|| i64::from_str_radix(text, 16).ok())?
}

/// The number that the servers append.
fn digits(number: &str) -> Option<i64> {
    docent_queue::internals::number(number, "").map(i64::from)
}
