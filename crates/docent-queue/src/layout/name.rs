//! Names of items, and the order that follows from them. A name has a prefix, the priority and time of the
//! item, and the number that the server appended.

use std::collections::BTreeMap;

/// Last number that is safe to use. Numbers above it are in the last part of the server's 32-bit counter,
/// which may stick, or wrap and repeat.
const DANGER_FROM: i32 = i32::MAX - (1 << 20);

/// Number of digits of a priority in a name.
const PRIORITY_DIGITS: usize = 8;
const TIME_DIGITS: usize = 16;

/// Mark before the time of an item that was put with a delay.
const PUT: char = 't';

/// Mark before the time of an item that was given back with a delay.
const RETURNED: char = 'r';

/// Name of an item, with its place in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemName {
    /// The whole name.
    pub text: String,
    /// Priority: items with a lower number come first. 0 if the name contains none.
    pub priority: i32,
    /// Time from which the item may be handed out, in milliseconds since the Unix epoch. `None` if it may be
    /// handed out immediately.
    pub due: Option<u64>,
    /// Whether a consumer gave the item back with that time. The item's place is then determined by its
    /// number.
    pub returned: bool,
    /// Number that the server appended.
    pub number: i32,
}

impl ItemName {
    /// Parses the name of an item. Returns `None` for other names.
    pub fn parse(text: String, prefix: &str) -> Option<Self> {
        let mut rest = text.strip_prefix(prefix)?;
        let (mut priority, mut due, mut returned) = (0, None, false);
        if let Some((digits, behind)) = field(rest, 'p', PRIORITY_DIGITS) {
            priority = unsigned(u32::from_str_radix(digits, 16).ok()?);
            rest = behind;
        }
        for mark in [PUT, RETURNED] {
            if let Some((digits, behind)) = field(rest, mark, TIME_DIGITS) {
                due = Some(u64::from_str_radix(digits, 16).ok()?);
                returned = mark == RETURNED;
                rest = behind;
                break;
            }
        }
        let number = digits(rest)?;
        Some(Self { text, priority, due, returned, number })
    }

    /// Returns the name of the item `name` after a consumer has given it back until the time `until`. The
    /// name has the same priority and number, so the item keeps its place.
    pub(crate) fn returned(name: String, prefix: &str, until: u64) -> Option<String> {
        let Self { priority, number, .. } = Self::parse(name, prefix)?;
        let prefix = Self::prefix(prefix, priority, None);
        Some(format!("{prefix}{RETURNED}{until:016x}-{number:010}"))
    }

    /// Returns the text before the number of an item with this priority and time.
    pub(crate) fn prefix(prefix: &str, priority: i32, due: Option<u64>) -> String {
        let priority = match priority {
            0 => String::new(),
            priority => format!("p{:08x}-", signed(priority)),
        };
        let due = due.map(|due| format!("{PUT}{due:016x}-")).unwrap_or_default();
        format!("{prefix}{priority}{due}")
    }
}

/// Items that may be handed out now, in order, and the time at which the next item may be.
#[derive(Debug, Default)]
pub struct Turns {
    /// Items in the order in which they are handed out.
    pub ready: Vec<ItemName>,
    /// Time at which the next delayed item may be handed out, in milliseconds since the Unix epoch.
    pub next: Option<u64>,
}

impl Turns {
    /// Orders `items` as they are handed out at the time `now`.
    ///
    /// Lower priorities come first. Within one priority, items that were put with a delay are ordered by
    /// their times. The first of them precedes all items without a delay that were put after it. An item that
    /// was given back with a delay has the place of its number once the delay has passed.
    pub fn at(now: u64, items: impl IntoIterator<Item = ItemName>) -> Self {
        let mut next: Option<u64> = None;
        let mut classes: BTreeMap<i32, (Vec<ItemName>, Vec<ItemName>)> = BTreeMap::new();
        for item in items {
            let (plain, delayed) = classes.entry(item.priority).or_default();
            match item.due {
                Some(due) if due > now => next = Some(next.map_or(due, |next| next.min(due))),
                Some(_) if !item.returned => delayed.push(item),
                _ => plain.push(item),
            }
        }
        let ready = classes.into_values().flat_map(|(plain, delayed)| merged(plain, delayed)).collect();
        Self { ready, next }
    }
}

/// Maps a priority to an unsigned number with the same order.
fn signed(priority: i32) -> u32 {
    priority.cast_unsigned() ^ (1 << 31)
}

fn unsigned(ordered: u32) -> i32 {
    (ordered ^ (1 << 31)).cast_signed()
}

/// Returns the hexadecimal digits after `mark`, and the text after the digits and a hyphen.
fn field(text: &str, mark: char, count: usize) -> Option<(&str, &str)> {
    let (digits, behind) = text.strip_prefix(mark)?.split_once('-')?;
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digits.len() == count && digits.bytes().all(lower)).then_some((digits, behind))
}

/// Returns the number of a node: ten digits right after `prefix`. Returns `None` for other names.
pub fn number(name: &str, prefix: &str) -> Option<i32> {
    digits(name.strip_prefix(prefix)?)
}

/// Returns the number after the last `marker` in a name.
pub(crate) fn number_after(name: &str, marker: &str) -> Option<i32> {
    digits(name.rsplit_once(marker)?.1)
}

fn digits(number: &str) -> Option<i32> {
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.len() != 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}

/// Returns whether the numbers are so nearly used up that their order is no longer reliable.
pub(crate) fn is_in_danger_zone(number: i32) -> bool {
    !(0..=DANGER_FROM).contains(&number)
}

/// Returns the nodes among `names` that have a number right after `prefix`, ordered by number.
pub(crate) fn in_order(names: impl IntoIterator<Item = String>, prefix: &str) -> Vec<String> {
    let mut items: Vec<_> =
        names.into_iter().filter_map(|name| Some((number(&name, prefix)?, name))).collect();
    items.sort_unstable();
    items.into_iter().map(|(_, name)| name).collect()
}

fn merged(mut plain: Vec<ItemName>, mut delayed: Vec<ItemName>) -> Vec<ItemName> {
    plain.sort_unstable_by_key(|item| item.number);
    if delayed.is_empty() {
        return plain;
    }
    delayed.sort_unstable_by_key(|item| (item.due, item.number));
    let (mut plain, mut delayed) = (plain.into_iter().peekable(), delayed.into_iter().peekable());
    let next = std::iter::from_fn(|| {
        let delayed_first = match (plain.peek(), delayed.peek()) {
            (Some(plain), Some(delayed)) => delayed.number < plain.number,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if delayed_first { delayed.next() } else { plain.next() }
    });
    next.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_given_back_until_a_time_keeps_its_priority_and_its_number() {
        let returned = |name: &str| ItemName::returned(name.to_owned(), "item-", 0x1234);
        assert_eq!(returned("item-0000000007").unwrap(), "item-r0000000000001234-0000000007");
        for before in
            ["item-p80000005-t0000000000000001-0000000007", "item-p80000005-r0000000000000001-0000000007"]
        {
            let again = returned(before).unwrap();
            assert_eq!(again, "item-p80000005-r0000000000001234-0000000007");
            let parsed = ItemName::parse(again, "item-").unwrap();
            assert_eq!(
                (parsed.priority, parsed.due, parsed.returned, parsed.number),
                (5, Some(0x1234), true, 7)
            );
        }
        assert_eq!(returned("queue-0000000007"), None);
    }

    #[test]
    fn items_are_in_the_order_of_their_numbers_and_foreign_names_are_skipped() {
        let names =
            ["item-0000000010", "item-0000000009", "foo", "item-", "item-12345678901", "item-000000000a"];
        let order = in_order(names.map(String::from), "item-");
        assert_eq!(order, ["item-0000000009", "item-0000000010"]);
        // Items of an id queue or a priority queue are not items of a plain queue.
        assert_eq!(number("queue-|a|0000000001", "queue-"), None);
        assert_eq!(number("queue-1000000050000000000", "queue-"), None);
        assert_eq!(number("item--2147483648", "item-"), Some(i32::MIN));
    }

    #[test]
    fn a_name_contains_priority_and_time() {
        let parse = |name: &str| ItemName::parse(name.to_owned(), "item-");
        for (priority, due) in [(0, None), (5, None), (-5, Some(7)), (i32::MIN, Some(u64::MAX)), (0, Some(0))]
        {
            let name = format!("{}0000000042", ItemName::prefix("item-", priority, due));
            let parsed = parse(&name).unwrap();
            assert_eq!((parsed.priority, parsed.due, parsed.number), (priority, due, 42), "{name}");
        }
        assert_eq!(ItemName::prefix("item-", 0, None), "item-");
        for stranger in ["item-p5-0000000001", "item-pzzzzzzzz-0000000001", "item-x-0000000001", "item-"] {
            assert_eq!(parse(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn the_danger_zone_is_the_end_of_the_counter_and_what_comes_after() {
        assert!(!is_in_danger_zone(0) && !is_in_danger_zone(DANGER_FROM));
        assert!(is_in_danger_zone(DANGER_FROM + 1) && is_in_danger_zone(i32::MAX) && is_in_danger_zone(-1));
    }

    fn item(priority: i32, due: Option<u64>, number: u32) -> ItemName {
        let text = format!("{}{number:010}", ItemName::prefix("item-", priority, due));
        ItemName::parse(text, "item-").unwrap()
    }

    fn numbers(now: u64, items: &[ItemName]) -> (Vec<i32>, Option<u64>) {
        let turns = Turns::at(now, items.to_vec());
        (turns.ready.iter().map(|item| item.number).collect(), turns.next)
    }

    #[test]
    fn lower_priorities_come_first_and_numbers_decide_within_one() {
        let items = [item(0, None, 2), item(5, None, 0), item(-5, None, 3), item(0, None, 1)];
        assert_eq!(numbers(0, &items), (vec![3, 1, 2, 0], None));
    }

    #[test]
    fn an_item_may_be_taken_from_its_time_on() {
        let items = [item(0, Some(20), 1), item(0, Some(10), 2), item(0, None, 3), item(0, None, 0)];
        assert_eq!(numbers(5, &items), (vec![0, 3], Some(10)));
        assert_eq!(numbers(10, &items), (vec![0, 2, 3], Some(20)));
        // Of the two delayed items, the one with the earlier time comes first. Both were put before the last
        // item.
        assert_eq!(numbers(20, &items), (vec![0, 2, 1, 3], None));
    }

    #[test]
    fn an_item_that_was_given_back_until_a_time_has_its_place_again_from_then_on() {
        let returned = |due, number| ItemName { returned: true, ..item(0, Some(due), number) };
        let items = [returned(20, 0), returned(10, 1), item(0, None, 2), item(0, Some(5), 3)];
        assert_eq!(numbers(5, &items), (vec![2, 3], Some(10)));
        assert_eq!(numbers(10, &items), (vec![1, 2, 3], Some(20)));
        assert_eq!(numbers(20, &items), (vec![0, 1, 2, 3], None));
    }
}
