use super::SharedMap;
use super::part::{MAX_LEN, Part};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Change of one name: its new value, or `None` to remove it.
type Step = (u16, Option<u8>);

fn name(number: u16) -> Arc<str> {
    format!("{number:05}").into()
}

fn apply(map: &mut SharedMap<u8>, model: &mut BTreeMap<Arc<str>, u8>, (number, value): Step) {
    let name = name(number);
    match value {
        Some(value) => assert_eq!(map.insert(&name, value), model.insert(name, value)),
        None => assert_eq!(map.remove(&name), model.remove(&name)),
    }
}

fn assert_same(map: &SharedMap<u8>, model: &BTreeMap<Arc<str>, u8>) {
    assert_eq!(map.len(), model.len());
    assert!(map.iter().eq(model.iter()));
    assert!(map.iter().rev().eq(model.iter().rev()));
    for (at, (name, value)) in model.iter().enumerate() {
        assert_eq!((map.get(name), map.position(name)), (Some(value), Ok(at)));
        assert_eq!(map.at(at), Some((name, value)));
    }
    assert_eq!(map.at(model.len()), None);
}

/// The names that differ, with both values, found by a full comparison.
fn compared(
    before: &BTreeMap<Arc<str>, u8>,
    after: &BTreeMap<Arc<str>, u8>,
) -> Vec<(Arc<str>, Option<u8>, Option<u8>)> {
    let mut names: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
    names.sort();
    names.dedup();
    let differences = names.into_iter().map(|name| {
        let values = (before.get(&name).copied(), after.get(&name).copied());
        (name, values.0, values.1)
    });
    differences.filter(|(_, before, after)| before != after).collect()
}

fn differences(before: &SharedMap<u8>, after: &SharedMap<u8>) -> Vec<(Arc<str>, Option<u8>, Option<u8>)> {
    let mut found = Vec::new();
    before.differences(
        after,
        |one, other| one == other,
        |name, before, after| found.push((Arc::clone(name), before.copied(), after.copied())),
    );
    found
}

fn steps(names: u16, max: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((0..names, proptest::option::weighted(0.6, any::<u8>())), 0..max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_behaves_like_an_ordered_map_and_its_differences_equal_a_full_comparison(
        first in steps(2_000, 3_000),
        removals in 0..2_000_u16,
        second in steps(2_000, 200),
    ) {
        let (mut map, mut model) = (SharedMap::new(), BTreeMap::new());
        for step in first {
            apply(&mut map, &mut model, step);
        }
        assert_same(&map, &model);
        let (before, model_before) = (map.clone(), model.clone());
        // Remove many names in a row, so that the tree loses levels.
        let removals = (0..removals).map(|number| (number, None));
        for step in removals.chain(second) {
            apply(&mut map, &mut model, step);
        }
        assert_same(&map, &model);
        assert_same(&before, &model_before);
        prop_assert_eq!(differences(&before, &map), compared(&model_before, &model));
        prop_assert_eq!(differences(&map, &before), compared(&model, &model_before));
        prop_assert!(differences(&map, &map.clone()).is_empty());
    }
}

#[test]
fn names_before_and_after_all_other_names_are_found() {
    let mut map = SharedMap::new();
    for number in (100..200).rev() {
        map.insert(&name(number), 0);
    }
    assert_eq!((map.position("0"), map.position("9")), (Err(0), Err(100)));
    assert_eq!(map.after(None).unwrap().0, &name(100));
    assert_eq!(map.after(Some("00150")).unwrap().0, &name(151));
    assert_eq!(map.after(Some("001505")).unwrap().0, &name(151));
    assert!(map.after(Some("00199")).is_none());
    assert_eq!(map.remove("none"), None);
}

#[test]
fn an_iterator_ends_when_front_and_back_meet() {
    let mut map = SharedMap::new();
    for number in 0..100 {
        map.insert(&name(number), 0);
    }
    let mut iter = map.iter();
    let mut front_index = 0;
    while let Some((front, _)) = iter.next() {
        assert_eq!(front, &name(front_index));
        if let Some((back, _)) = iter.next_back() {
            assert_eq!(back, &name(99 - front_index));
        }
        front_index += 1;
    }
    assert_eq!((front_index, iter.len()), (50, 0));
}

#[test]
fn a_difference_in_a_large_map_is_found_with_few_comparisons() {
    let mut map = SharedMap::new();
    for number in 0..20_000 {
        map.insert(&name(number), 0);
    }
    let before = map.clone();
    for number in [3, 9_999, 19_998] {
        map.insert(&name(number), 1);
    }
    map.remove(&name(5_000));
    map.insert(&"05000x".into(), 1);
    let comparisons = Cell::new(0);
    let mut found = 0;
    let is_same = |one: &u8, other: &u8| {
        comparisons.set(comparisons.get() + 1);
        one == other
    };
    before.differences(&map, is_same, |_, _, _| found += 1);
    assert_eq!(found, 5);
    assert!(comparisons.get() < 500, "{} values were compared", comparisons.get());
}

/// Lengths and capacities of the leaves.
fn leaves(part: &Part<u8>, found: &mut Vec<(usize, usize)>) {
    match part {
        Part::Leaf(entries) => found.push((entries.len(), entries.capacity())),
        Part::Inner(children) => children.iter().for_each(|child| leaves(&child.part, found)),
    }
}

proptest! {
    #[test]
    fn no_leaf_keeps_more_room_than_it_may_use(steps in steps(300, 900)) {
        let (mut map, mut model) = (SharedMap::new(), BTreeMap::new());
        let mut held = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            apply(&mut map, &mut model, step);
            // Holding a clone forces a copy of the changed parts.
            if at % 16 == 0 {
                held = vec![map.clone()];
            }
            let mut found = Vec::new();
            leaves(map.root().0, &mut found);
            prop_assert!(found.iter().all(|(_, room)| *room <= MAX_LEN), "{:?}", found);
        }
        drop(held);
    }
}

#[test]
fn names_inserted_in_order_fill_the_leaves() {
    let mut map = SharedMap::new();
    for number in 0..1_000 {
        map.insert(&name(number), 0);
    }
    let mut found = Vec::new();
    leaves(map.root().0, &mut found);
    assert_eq!(found.len(), 1_000_usize.div_ceil(MAX_LEN), "{found:?}");
}
