use super::{Load, OutlierPolicy, PickPolicy, Picked, RoundRobin};
use crate::Instance;
use docent_core::recipe::SharedMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::time::Instant;

/// An instance in a view, with its `Load`.
pub(crate) struct Candidate<P> {
    /// Name of the instance's node.
    pub(crate) key: Arc<str>,
    pub(crate) instance: Arc<Instance<P>>,
    /// Transaction that last wrote the instance.
    pub(crate) mzxid: i64,
    pub(crate) load: Arc<Load>,
}

impl<P> Clone for Candidate<P> {
    fn clone(&self) -> Self {
        Self {
            key: Arc::clone(&self.key),
            instance: Arc::clone(&self.instance),
            mzxid: self.mzxid,
            load: Arc::clone(&self.load),
        }
    }
}

/// Ordered candidates, addressed by index.
pub(crate) trait Candidates<P> {
    fn count(&self) -> usize;

    /// Returns the candidate at this index, which must be below the count.
    fn at(&self, index: usize) -> Option<&Candidate<P>>;

    /// Returns the index of the candidate with this key.
    fn place(&self, key: &str) -> Option<usize>;

    fn each<'a>(&'a self) -> impl Iterator<Item = &'a Candidate<P>>
    where
        P: 'a;
}

impl<P> Candidates<P> for SharedMap<Candidate<P>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, index: usize) -> Option<&Candidate<P>> {
        self.at(index).map(|(_, candidate)| candidate)
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.position(key).ok()
    }

    fn each<'a>(&'a self) -> impl Iterator<Item = &'a Candidate<P>>
    where
        P: 'a,
    {
        self.iter().map(|(_, candidate)| candidate)
    }
}

impl<P> Candidates<P> for [Candidate<P>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, index: usize) -> Option<&Candidate<P>> {
        self.get(index)
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.iter().position(|candidate| *candidate.key == *key)
    }

    fn each<'a>(&'a self) -> impl Iterator<Item = &'a Candidate<P>>
    where
        P: 'a,
    {
        self.iter()
    }
}

/// Set of candidates that a pick chooses from.
#[derive(Debug, Clone, Copy)]
enum Among {
    /// All candidates of the view.
    All,
    /// Candidates that pass a filter, or that are not set aside.
    Some,
}

/// Chooses among instances by a policy, and keeps the state that this needs.
#[derive(Debug)]
pub(crate) struct Balance {
    policy: PickPolicy,
    pub(super) rule: OutlierPolicy,
    /// Round-robin position among all candidates.
    next: AtomicUsize,
    /// Round-robin positions among subsets: candidates that pass a filter, or that are not set aside.
    round_robin: RoundRobin,
    /// Key of the candidate that [`PickPolicy::Sticky`] currently uses.
    chosen: Mutex<Option<Arc<str>>>,
    /// `Load`s of instances that were set aside and are not known to be healthy again.
    unhealthy: Mutex<Vec<Weak<Load>>>,
    /// True if `unhealthy` is not empty, so that a pick must skip instances. Changed only while `unhealthy`
    /// is locked.
    has_unhealthy: AtomicBool,
}

impl Balance {
    pub(crate) fn new(policy: PickPolicy, rule: OutlierPolicy) -> Self {
        Self {
            policy,
            rule,
            next: AtomicUsize::new(0),
            round_robin: RoundRobin::default(),
            chosen: Mutex::default(),
            unhealthy: Mutex::default(),
            has_unhealthy: AtomicBool::new(false),
        }
    }

    /// Picks one of all `candidates`, or returns `None` if there are none. Instances that are set aside are
    /// picked only if all of them are.
    pub(crate) fn pick<P>(self: &Arc<Self>, candidates: &(impl Candidates<P> + ?Sized)) -> Option<Picked<P>> {
        self.pick_from(candidates, Among::All)
    }

    /// Like [`pick`](Self::pick), among a subset of all candidates.
    pub(crate) fn pick_some<P>(self: &Arc<Self>, candidates: &[Candidate<P>]) -> Option<Picked<P>> {
        self.pick_from(candidates, Among::Some)
    }

    fn pick_from<P>(
        self: &Arc<Self>,
        candidates: &(impl Candidates<P> + ?Sized),
        among: Among,
    ) -> Option<Picked<P>> {
        let has_unhealthy = self.has_unhealthy.load(Ordering::Relaxed);
        let admitted = if has_unhealthy { self.admitted(candidates) } else { Vec::new() };
        let candidate = match admitted.is_empty() {
            true => self.choose(candidates, among),
            false => self.choose(&*admitted, Among::Some),
        };
        Some(Picked::new(candidate?, Arc::clone(self)))
    }

    fn unhealthy(&self) -> MutexGuard<'_, Vec<Weak<Load>>> {
        self.unhealthy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the instance of `load` was set aside.
    pub(super) fn note_set_aside(&self, load: &Arc<Load>) {
        let mut unhealthy = self.unhealthy();
        if !unhealthy.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(load))) {
            unhealthy.push(Arc::downgrade(load));
        }
        self.has_unhealthy.store(true, Ordering::Relaxed);
    }

    fn admitted<P>(&self, candidates: &(impl Candidates<P> + ?Sized)) -> Vec<Candidate<P>> {
        let now = Instant::now();
        let mut unhealthy = self.unhealthy();
        // Check all instances, not only those that can be picked this time, because others may become
        // available again.
        unhealthy.retain(|load| load.upgrade().is_some_and(|load| !load.is_healthy(now, self.rule)));
        self.has_unhealthy.store(!unhealthy.is_empty(), Ordering::Relaxed);
        drop(unhealthy);
        candidates.each().filter(|candidate| candidate.load.admits(now, self.rule)).cloned().collect()
    }

    fn choose<P>(&self, candidates: &(impl Candidates<P> + ?Sized), among: Among) -> Option<Candidate<P>> {
        let count = candidates.count();
        let any = || fastrand::usize(..count);
        if count == 0 {
            return None;
        }
        let index = match self.policy {
            PickPolicy::RoundRobin => match among {
                Among::All => self.next.fetch_add(1, Ordering::Relaxed) % count,
                Among::Some => self.round_robin.take(candidates),
            },
            PickPolicy::Random => any(),
            PickPolicy::Sticky => self.stick(candidates),
            PickPolicy::Weighted => by_weight(candidates),
            PickPolicy::PowerOfTwo => {
                let one = any();
                let other = (one + fastrand::usize(1..count.max(2))) % count;
                let in_flight = |index| candidates.at(index).map(|candidate| candidate.load.in_flight());
                if in_flight(other) < in_flight(one) { other } else { one }
            }
        };
        candidates.at(index).cloned()
    }

    fn stick<P>(&self, candidates: &(impl Candidates<P> + ?Sized)) -> usize {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        let known = chosen.as_ref().and_then(|key| candidates.place(key));
        known.unwrap_or_else(|| {
            let index = fastrand::usize(..candidates.count());
            *chosen = candidates.at(index).map(|candidate| Arc::clone(&candidate.key));
            index
        })
    }
}

fn by_weight<P>(candidates: &(impl Candidates<P> + ?Sized)) -> usize {
    let weight = |candidate: &Candidate<P>| u64::from(candidate.instance.weight.unwrap_or(1));
    let total: u64 = candidates.each().map(weight).sum();
    if total == 0 {
        return fastrand::usize(..candidates.count());
    }
    let mut remaining = fastrand::u64(..total);
    let met = candidates.each().position(|candidate| match remaining.checked_sub(weight(candidate)) {
        Some(rest) => {
            remaining = rest;
            false
        }
        None => true,
    });
    met.unwrap_or(0)
}

impl<P> fmt::Debug for Candidate<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("key", &self.key)
            .field("mzxid", &self.mzxid)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::round_robin::SETS;
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn candidates(weights: &[Option<u32>]) -> Vec<Candidate<()>> {
        let candidate = |(number, weight): (usize, &Option<u32>)| {
            let mut instance = Instance::new("svc", "10.0.0.1", 80).id(number.to_string());
            instance.weight = *weight;
            Candidate {
                key: number.to_string().into(),
                instance: Arc::new(instance),
                mzxid: 1,
                load: Arc::default(),
            }
        };
        weights.iter().enumerate().map(candidate).collect()
    }

    fn balance(policy: PickPolicy) -> Arc<Balance> {
        Arc::new(Balance::new(policy, OutlierPolicy::default()))
    }

    /// Returns how often each instance was picked in this number of picks.
    fn picks(balance: &Arc<Balance>, candidates: &[Candidate<()>], count: usize) -> BTreeMap<String, usize> {
        let mut picks = BTreeMap::new();
        for _ in 0..count {
            *picks.entry(balance.pick(candidates).unwrap().id.clone()).or_default() += 1;
        }
        picks
    }

    #[test]
    fn an_empty_set_yields_no_pick() {
        for policy in [
            PickPolicy::RoundRobin,
            PickPolicy::Random,
            PickPolicy::Sticky,
            PickPolicy::Weighted,
            PickPolicy::PowerOfTwo,
        ] {
            assert!(balance(policy).pick(&candidates(&[])[..]).is_none());
            assert_eq!(picks(&balance(policy), &candidates(&[None]), 3).len(), 1);
        }
    }

    #[test]
    fn round_robin_takes_turns_also_when_its_count_wraps() {
        let (robin, three) = (balance(PickPolicy::RoundRobin), candidates(&[None; 3]));
        robin.next.store(usize::MAX - 1, Ordering::Relaxed);
        let counts = picks(&robin, &three, 302);
        assert!(counts.values().all(|count| (100..=101).contains(count)), "{counts:?}");
    }

    #[test]
    fn round_robin_is_fair_also_among_more_sets_than_it_remembers() {
        let (robin, all) = (balance(PickPolicy::RoundRobin), candidates(&[None; 2 * SETS]));
        for (sets, most) in [(SETS / 2, 50), (SETS, 50)] {
            let mut picks = BTreeMap::<_, usize>::new();
            for number in (0..sets).cycle().take(100 * sets) {
                let picked = robin.pick_some(&all[2 * number..2 * number + 2]).unwrap();
                *picks.entry(picked.id.clone()).or_default() += 1;
            }
            assert_eq!(picks.len(), 2 * sets);
            assert!(picks.values().all(|count| *count <= most), "{picks:?}");
        }
        // One set more than it remembers: each set starts at a random position.
        let mut picks = BTreeMap::<_, usize>::new();
        for number in (0..=SETS).cycle().take(100 * (SETS + 1)) {
            let picked = robin.pick_some(&all[number..number + 2]).unwrap();
            *picks.entry((number, picked.id.clone())).or_default() += 1;
        }
        assert!(picks.len() == 2 * (SETS + 1) && picks.values().all(|count| *count < 90), "{picks:?}");
    }

    #[test]
    fn random_and_weighted_picks_have_their_shares() {
        let counts = picks(&balance(PickPolicy::Random), &candidates(&[None; 4]), 4000);
        assert!(counts.len() == 4 && counts.values().all(|count| (800..1200).contains(count)), "{counts:?}");
        let four = candidates(&[Some(0), None, Some(3), Some(6)]);
        let counts = picks(&balance(PickPolicy::Weighted), &four, 10_000);
        assert!(!counts.contains_key("0"), "{counts:?}");
        for (id, share) in [("1", 1000), ("2", 3000), ("3", 6000)] {
            assert!(counts[id].abs_diff(share) < 300, "{counts:?}");
        }
        let largest = candidates(&[Some(u32::MAX); 3]);
        assert_eq!(picks(&balance(PickPolicy::Weighted), &largest, 100).len(), 3);
        assert_eq!(picks(&balance(PickPolicy::Weighted), &candidates(&[Some(0); 3]), 100).len(), 3);
    }

    #[test]
    fn a_sticky_pick_lasts_until_its_instance_is_removed() {
        let (sticky, mut three) = (balance(PickPolicy::Sticky), candidates(&[None; 3]));
        let first = picks(&sticky, &three, 50);
        assert_eq!(first.len(), 1);
        let first = first.into_keys().next().unwrap();
        three.retain(|candidate| *candidate.key != *first);
        let second = picks(&sticky, &three, 50);
        assert!(second.len() == 1 && !second.contains_key(&first));
    }

    #[test]
    fn of_two_the_one_with_less_in_flight_is_picked() {
        let (two, candidates) = (balance(PickPolicy::PowerOfTwo), candidates(&[None; 2]));
        let held: Vec<_> = (0..100).map(|_| two.pick(&*candidates).unwrap()).collect();
        let in_flight: Vec<_> = candidates.iter().map(|candidate| candidate.load.in_flight()).collect();
        assert_eq!(in_flight, [50, 50]);
        drop(held);
        assert!(candidates.iter().all(|candidate| candidate.load.in_flight() == 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_instance_is_set_aside_retried_and_picked_if_all_are_set_aside() {
        let rule = OutlierPolicy::default().threshold(1);
        let (robin, two) = (Arc::new(Balance::new(PickPolicy::RoundRobin, rule)), candidates(&[None; 2]));
        let bad = loop {
            let picked = robin.pick(&*two).unwrap();
            if picked.id == "0" {
                break picked;
            }
        };
        bad.failed();
        assert!(!picks(&robin, &two, 10).contains_key("0"));
        robin.pick(&*two).unwrap().failed();
        assert_eq!(picks(&robin, &two, 10).len(), 2, "all instances are set aside");
        tokio::time::advance(rule.period + Duration::from_secs(1)).await;
        // Both are on probation: each can be picked only once at a time.
        let (one, other) = (robin.pick(&*two).unwrap(), robin.pick(&*two).unwrap());
        assert_ne!(one.id, other.id);
        let good = one.id.clone();
        one.succeeded();
        assert_eq!(picks(&robin, &two, 10).into_keys().collect::<Vec<_>>(), [good]);
        other.succeeded();
        assert_eq!(picks(&robin, &two, 10).len(), 2);
        assert!(!robin.has_unhealthy.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pick_from_a_subset_remembers_other_instances_set_aside() {
        let rule = OutlierPolicy::default().threshold(1);
        let (robin, three) = (Arc::new(Balance::new(PickPolicy::RoundRobin, rule)), candidates(&[None; 3]));
        robin.pick(&three[..1]).unwrap().failed();
        assert_eq!(picks(&robin, &three[1..], 10).len(), 2);
        assert!(!picks(&robin, &three, 10).contains_key("0"));
        // Once the instance is healthy again, picks no longer check for instances that are set aside.
        tokio::time::advance(rule.period).await;
        robin.pick(&three[..1]).unwrap().succeeded();
        assert_eq!(picks(&robin, &three[1..], 10).len(), 2);
        assert!(!robin.has_unhealthy.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn an_instance_set_aside_forever_stays_so() {
        let rule = OutlierPolicy::default().threshold(1).period(Duration::MAX);
        let (robin, two) = (Arc::new(Balance::new(PickPolicy::RoundRobin, rule)), candidates(&[None; 2]));
        robin.pick(&two[..1]).unwrap().failed();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(!picks(&robin, &two, 10).contains_key("0"));
    }
}
