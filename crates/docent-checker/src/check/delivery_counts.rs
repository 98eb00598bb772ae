use super::Found;
use crate::queues::Queues;
use crate::scene::Scene;
use crate::violation::{Invariant, Violation};

/// **Counts**: a delivery says how many claims of its item there were, its own included, and no item is
/// handed out more often than the queue allows.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    let queues = Queues::of(scene);
    for delivered in &queues.deliveries {
        // Without a claim there is nothing to count: see Q6.
        let Some((item, claim)) = queues.claim_of(delivered) else { continue };
        let count = item.claims_by(claim.created.zxid);
        let most = scene.facts().queues.get(&item.queued.queue).copied().unwrap_or(u32::MAX);
        let said = delivered.count.map(|count| count as usize);
        let what = if said != Some(count) {
            format!("delivery {count} of item {} says it is {said:?}:", delivered.item)
        } else if count > most as usize {
            format!("item {} was handed out {count} times, and {most} are allowed:", delivered.item)
        } else {
            continue;
        };
        found.push(
            Violation::new(Invariant::Q4, delivered.at, what).client(delivered.client).path(&item.node.path),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::sketch::Sketch;
    use crate::violation::Invariant::Q4;

    fn handed_out(times: u32, say: impl Fn(u32) -> u32) -> Sketch {
        let mut sketch = Sketch::new();
        let item = sketch.at(100).put(0, 7);
        for count in 1..=times {
            let given = sketch.at(u64::from(count) * 200).give(1, &item, say(count));
            sketch.given_back(&given).delete_claim(&given);
        }
        sketch.end(2_000)
    }

    #[test]
    fn deliveries_are_counted() {
        handed_out(2, |count| count).holds();
        handed_out(2, |_| 1).breaks(Q4);
    }

    #[test]
    fn one_that_is_handed_out_too_often_is_caught() {
        handed_out(3, |count| count).breaks(Q4);
    }
}
