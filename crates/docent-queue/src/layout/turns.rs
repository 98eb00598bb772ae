use super::ItemName;
use std::collections::BTreeMap;

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
