use crate::analysis::{Analysis, End};
use crate::event::{Delivering, Ending, EventKind, Taking};
use crate::run::Run;
use std::fmt;

/// Derives the names of the fields of [`Coverage`], and the sum of two values.
macro_rules! coverage {
    ($(#[$of_all:meta])* pub struct Coverage { $($(#[$of_one:meta])* pub $figure:ident: usize,)* }) => {
        $(#[$of_all])*
        pub struct Coverage {
            $($(#[$of_one])* pub $figure: usize,)*
        }

        impl Coverage {
            /// The fields, each with its name.
            fn figures(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$((stringify!($figure), self.$figure)),*].into_iter()
            }
        }

        impl std::ops::AddAssign for Coverage {
            /// Adds the coverage of another run.
            fn add_assign(&mut self, other: Self) {
                $(self.$figure += other.$figure;)*
            }
        }
    };
}

coverage! {
    /// What a run showed, as counts of events.
    ///
    /// A run in which nothing was granted violates nothing, and proves nothing. A caller that counts a run as
    /// a success should therefore require a minimum with [`missing`](Self::missing).
    ///
    /// # Examples
    /// ```
    /// use docent_checker::{Coverage, Run};
    ///
    /// let coverage = Coverage::of(&Run::default());
    /// let missing = coverage.missing(&Coverage { grants: 1, ..Coverage::default() });
    /// assert_eq!(missing, ["grants: 0 of at least 1"]);
    /// ```
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Coverage {
        /// Attempts that began.
        pub attempts: usize,
        /// Attempts that were granted.
        pub grants: usize,
        /// Grants whose node was not the first in its line when it was created.
        pub contended: usize,
        /// Attempts that ended without a grant because of other holders or waiters.
        pub refused: usize,
        /// Attempts whose future was dropped.
        pub cancelled: usize,
        /// Guards that were lost.
        pub losses: usize,
        /// Pairs of holders of the same path that held at the same time, by the clock.
        pub overlaps: usize,
        /// Holders whose session expired.
        pub expiries: usize,
        /// Holders whose session was ended, or whose node was deleted, by a third party.
        pub taken: usize,
        /// Uses of a fenced resource.
        pub uses: usize,
        /// Uses that the fenced resource refused.
        pub stale_uses: usize,
        /// Faults that began.
        pub faults: usize,
        /// Attempts that were granted after all faults had ended.
        pub granted_in_calm: usize,
        /// Attempts that neither ended nor were granted.
        pub open: usize,
    }
}

impl Coverage {
    /// Counts the events of a run.
    pub fn of(run: &Run) -> Self {
        let analysis = Analysis::of(run);
        let mut coverage = Self { overlaps: crate::check::overlaps(&analysis), ..Self::default() };
        coverage.count_attempts(&analysis);
        for event in &run.events {
            match &event.kind {
                EventKind::Fault(_) => coverage.faults += 1,
                EventKind::Used(_, used) => {
                    coverage.uses += 1;
                    coverage.stale_uses += usize::from(!used.accepted);
                }
                EventKind::Took(_, Taking::Began { .. }) => coverage.attempts += 1,
                EventKind::Delivered(_, Delivering::Given { .. }) => {
                    coverage.grants += 1;
                    coverage.granted_in_calm +=
                        usize::from(analysis.calm().is_some_and(|calm| calm <= event.at));
                }
                _ => {}
            }
        }
        coverage
    }

    fn count_attempts(&mut self, analysis: &Analysis<'_>) {
        let calm = analysis.calm();
        for trace in analysis.attempts.all() {
            self.attempts += 1;
            self.losses += usize::from(trace.lost.is_some());
            match trace.ended.map(|(_, ending)| ending) {
                Some(Ending::Busy | Ending::TimedOut) => self.refused += 1,
                Some(Ending::Cancelled) => self.cancelled += 1,
                Some(Ending::Failed(_) | Ending::Passed) => {}
                None => self.open += usize::from(trace.waited_until().is_none()),
            }
            let Some((at, _)) = trace.granted else { continue };
            self.grants += 1;
            self.granted_in_calm += usize::from(calm.is_some_and(|calm| calm <= at));
            let Some((_, node)) = analysis.node_of(trace) else { continue };
            self.contended += usize::from(node.first.is_some_and(|first| first > node.created));
            let holding = trace.given_up();
            let Some(deleted) =
                node.deleted.filter(|deleted| holding.is_none_or(|until| until > deleted.when.at))
            else {
                continue;
            };
            match analysis.end_of(node, deleted) {
                End::Expired => self.expiries += 1,
                End::ThirdParty => self.taken += 1,
                End::Own => {}
            }
        }
    }

    /// Lists the counts that are below those of `least`, one line for each; empty if the coverage is
    /// sufficient.
    pub fn missing(&self, least: &Self) -> Vec<String> {
        let pairs = self.figures().zip(least.figures());
        pairs
            .filter(|((_, is), (_, least))| is < least)
            .map(|((name, is), (_, least))| format!("{}: {is} of at least {least}", name.replace('_', " ")))
            .collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures: Vec<_> = self.figures().map(|(name, figure)| format!("{name}={figure}")).collect();
        f.write_str(&figures.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::HistoryBuilder;

    #[test]
    fn a_run_with_nothing_in_it_shows_nothing() {
        let coverage = Coverage::of(&HistoryBuilder::new().run());
        assert_eq!(coverage, Coverage::default());
        let least = Coverage { grants: 1, contended: 1, ..Coverage::default() };
        assert_eq!(coverage.missing(&least), ["grants: 0 of at least 1", "contended: 0 of at least 1"]);
    }

    #[test]
    fn a_run_without_a_grant_does_not_pass_for_one() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt);
        let coverage = Coverage::of(&history.end(60_000).run());
        assert_eq!(coverage, Coverage { attempts: 1, open: 1, ..Coverage::default() });
    }

    #[test]
    fn a_hand_over_counts_as_contended() {
        let coverage = Coverage::of(&HistoryBuilder::good().run());
        assert_eq!((coverage.attempts, coverage.grants, coverage.contended), (2, 2, 1));
        assert_eq!(coverage.missing(&Coverage { grants: 2, ..Coverage::default() }), [""; 0]);
        let mut twice = coverage;
        twice += coverage;
        assert_eq!(twice.grants, 4);
        assert!(coverage.to_string().starts_with("attempts=2 grants=2 contended=1"), "{coverage}");
    }
}
