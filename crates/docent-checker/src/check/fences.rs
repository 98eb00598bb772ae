use super::Found;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};
use std::collections::BTreeMap;

/// **Fences increase**: every exclusive guard has a fence, made from the transaction that created its node,
/// and it is higher than those of all earlier holders of the path.
///
/// Assumed: one history of the ensemble, which was not restored from an older copy. A downgraded guard is not
/// exclusive and not looked at.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    let exclusive = scene.attempts.all().filter(|story| story.is_exclusive());
    let held = exclusive.filter_map(|story| {
        let (_, node) = scene.node_of(story)?;
        let (at, grant) = story.granted?;
        Some((node.created.zxid, at, grant.fence, story))
    });
    let mut held: Vec<_> = held.collect();
    held.sort_by_key(|(czxid, at, ..)| (*czxid, *at));
    for (czxid, at, fence, story) in held {
        let wrong = |what: String| {
            Violation::new(Invariant::M4, at, what)
                .attempt(story.id())
                .client(story.client)
                .path(story.attempt.path.clone())
        };
        let Some(fence) = fence else {
            found.push(wrong("granted without a fence:".to_owned()));
            continue;
        };
        if i64::try_from(fence) != Ok(czxid) {
            found.push(wrong(format!("its fence is {fence}, its node was created by transaction {czxid}:")));
        }
        let before = highest.insert(&story.attempt.path, fence);
        if let Some(before) = before.filter(|before| *before >= fence) {
            found.push(wrong(format!("its fence is {fence}, an earlier holder's was {before}:")));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::event::What;
    use crate::sketch::Sketch;
    use crate::violation::Invariant::M4;

    fn with_fences(fences: [Option<u64>; 2]) -> Sketch {
        let mut sketch = Sketch::good();
        let mut fences = fences.into_iter();
        for event in &mut sketch.run.events {
            if let What::Granted(_, grant) = &mut event.what {
                grant.fence = fences.next().unwrap();
            }
        }
        sketch.run.events.retain(|event| !matches!(event.what, What::Used(..)));
        sketch
    }

    #[test]
    fn the_transactions_of_the_nodes_are_right() {
        with_fences([Some(5), Some(6)]).holds();
    }

    #[test]
    fn a_fence_that_falls_is_caught() {
        with_fences([Some(7), Some(6)]).breaks(M4);
        assert_eq!(with_fences([Some(7), Some(6)]).sentences(M4).len(), 2);
    }

    #[test]
    fn numbers_of_the_line_are_no_fences_even_while_they_rise() {
        with_fences([Some(0), Some(1)]).breaks(M4);
    }

    #[test]
    fn a_guard_without_a_fence_is_caught() {
        with_fences([None, Some(6)]).breaks(M4);
    }
}
