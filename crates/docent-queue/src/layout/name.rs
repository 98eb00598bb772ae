//! The names of items: a prefix and the number that the server appended.

/// Numbers in the last part of the server's 32-bit counter, where it may stick or wrap and repeat.
const DANGER_FROM: i32 = i32::MAX - (1 << 20);

/// The number of an item, ten digits right after `prefix`; `None` for names of others.
pub(crate) fn number(name: &str, prefix: &str) -> Option<i32> {
    let number = name.strip_prefix(prefix)?;
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.len() != 10 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}

/// True when numbers are so nearly used up that order by them could not be relied on any more.
pub(crate) fn is_in_danger_zone(number: i32) -> bool {
    !(0..=DANGER_FROM).contains(&number)
}

/// The items among `names`, first in first.
pub(crate) fn in_order(names: impl IntoIterator<Item = String>, prefix: &str) -> Vec<String> {
    let mut items: Vec<_> =
        names.into_iter().filter_map(|name| Some((number(&name, prefix)?, name))).collect();
    items.sort_unstable();
    items.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_in_the_order_of_their_numbers_and_strangers_are_left_out() {
        let names =
            ["item-0000000010", "item-0000000009", "foo", "item-", "item-12345678901", "item-000000000a"];
        let order = in_order(names.map(String::from), "item-");
        assert_eq!(order, ["item-0000000009", "item-0000000010"]);
        // Items of an id queue or a priority queue are no items of a plain one.
        assert_eq!(number("queue-|a|0000000001", "queue-"), None);
        assert_eq!(number("queue-1000000050000000000", "queue-"), None);
        assert_eq!(number("item--2147483648", "item-"), Some(i32::MIN));
    }

    #[test]
    fn the_danger_zone_is_the_end_of_the_counter_and_what_comes_after() {
        assert!(!is_in_danger_zone(0) && !is_in_danger_zone(DANGER_FROM));
        assert!(is_in_danger_zone(DANGER_FROM + 1) && is_in_danger_zone(i32::MAX) && is_in_danger_zone(-1));
    }
}
