use docent::inspect::{Since, printable};
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

/// What is escaped in a segment of an address.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Writer of what all pages have in common: links and times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pen<'a> {
    /// Prefix of all addresses.
    pub(crate) base: &'a str,
    /// Time of the servers, by which ages are written. `None` in parts that are sent again: the browser
    /// writes the ages there, so that a part does not change only because time passes.
    pub(crate) now: Option<SystemTime>,
    pub(crate) allows_actions: bool,
    pub(crate) shows_data: bool,
}

impl Pen<'_> {
    /// Returns the address of the page about a path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{}", self.base, at(path))
    }

    /// A link to the page about a path.
    pub(crate) fn path(&self, path: &str) -> Markup {
        html! { a.path href=(self.at(path)) { (printable(path)) } }
    }

    /// A link to the list of sessions, at one of them.
    pub(crate) fn session(&self, session: Option<i64>) -> Markup {
        html! {
            @if let Some(session) = session {
                a.session href={ (self.base) "/sessions?q=" (format!("{session:#x}")) } { (format!("{session:#x}")) }
            }
        }
    }

    /// The time since which something is so, shown as an age.
    pub(crate) fn since(&self, since: Option<Since>) -> Markup {
        html! {
            @if let Some(since) = since { (self.age(since.at, since.is_at_least)) }
        }
    }

    /// A time of the servers, shown as an age.
    pub(crate) fn age(&self, at: SystemTime, is_at_least: bool) -> Markup {
        let text = self.now.map(|now| {
            let age = age(now.duration_since(at).unwrap_or_default());
            if is_at_least { format!("\u{2265}{age}") } else { age }
        });
        html! {
            time.at-least[is_at_least] datetime=(utc(at)) title=(utc(at)) data-since=(milliseconds(at)) { (text.unwrap_or_default()) }
        }
    }

    /// A time of the servers, shown as date and time.
    pub(crate) fn moment(&self, at: SystemTime) -> Markup {
        html! { time datetime=(utc(at)) { (utc(at)) } }
    }

    /// A link to an action, if actions are allowed.
    pub(crate) fn action(&self, what: &str, path: &str, node: &str, text: &str) -> Markup {
        let encode = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
        html! {
            @if self.allows_actions {
                a.action href={ (self.base) "/act?do=" (what) "&path=" (encode(path)) "&node=" (encode(node)) } { (text) }
            }
        }
    }

    /// A link to the data of a node, if data may be shown.
    pub(crate) fn data(&self, path: &str, text: &str) -> Markup {
        html! {
            @if self.shows_data {
                a.data href={ (self.base) "/data?path=" (utf8_percent_encode(path, SEGMENT)) } { (text) }
            }
        }
    }
}

/// Returns the address of the page about a path, without the base.
pub(crate) fn at(path: &str) -> String {
    let segments: Vec<_> = path
        .trim_start_matches('/')
        .split('/')
        .map(|it| utf8_percent_encode(it, SEGMENT).to_string())
        .collect();
    format!("/at/{}", segments.join("/"))
}

/// Returns the path from the rest of an address behind `/at/`, or `None` if that is not UTF-8.
pub(crate) fn path_segments(rest: &str) -> Option<String> {
    let decoded = percent_decode_str(rest.trim_end_matches('/')).decode_utf8().ok()?;
    Some(format!("/{decoded}"))
}

/// Returns the id of a row, which depends only on its key.
pub(crate) fn row_id(key: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    format!("row-{:x}", hasher.finish())
}

/// Returns an age with one unit, such as `3m`.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns a time as `2026-03-01T12:30:05Z`. Times outside of the years 1970 to 9999, such as that of an item
/// that is never due, become the first or last second of these years.
pub(crate) fn utc(time: SystemTime) -> String {
    const YEARS: Duration = Duration::from_secs(253_402_300_799);
    let time = time.clamp(SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + YEARS);
    humantime::format_rfc3339_seconds(time).to_string()
}

pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    docent::recipe::since_1970_ms(time)
}

/// Returns the number with its noun.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_path() {
        for path in ["/", "/shop/orders", "/a b/ü?#%2F", "/<script>/\"'&"] {
            let address = at(path);
            assert!(address.is_ascii() && !address.contains(['<', '"', ' ', '?', '#']), "{address}");
            assert_eq!(path_segments(address.strip_prefix("/at/").unwrap()).as_deref(), Some(path));
        }
    }

    #[test]
    fn any_time_has_a_text() {
        let at = |ms| utc(SystemTime::UNIX_EPOCH + Duration::from_millis(ms));
        assert_eq!(at(1_700_000_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(at(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(utc(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn ages_have_one_unit() {
        let ages = [0, 59, 60, 3_599, 3_600, 172_799, 172_800];
        let texts: Vec<_> = ages.iter().map(|seconds| age(Duration::from_secs(*seconds))).collect();
        assert_eq!(texts, ["0s", "59s", "1m", "59m", "1h", "47h", "2d"]);
    }
}
