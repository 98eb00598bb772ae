use std::time::Duration;
use tower::retry::budget::{Budget, TpsBudget};

/// Time for which a request counts.
const TTL: Duration = Duration::from_secs(10);

/// Budget for attempts at further instances, shared by all requests to a [`Balanced`](crate::Balanced)
/// service or a channel. It prevents retries from multiplying the load on a service whose instances all fail.
/// The algorithm is that of tower and finagle, a token bucket over the last 10 s.
///
/// The first attempt of each request is free, and clones share one budget. If the budget is exhausted, the
/// request fails with the error of its previous attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryBudget {
    /// Further attempts as a percentage of the requests, at most 100,000. Up to 100, the share is rounded
    /// up to the whole, a half, a third, a quarter, and so on: 30 becomes a third. Default: 20.
    pub percent: u32,
    /// Additional further attempts per second, so that rare requests have some too; they accumulate over 10
    /// s. Default: 10.
    pub min_per_second: u32,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { percent: 20, min_per_second: 10 }
    }
}

impl RetryBudget {
    /// Sets [`percent`](Self::percent).
    #[must_use]
    pub fn percent(mut self, percent: u32) -> Self {
        self.percent = percent;
        self
    }

    /// Sets [`min_per_second`](Self::min_per_second).
    #[must_use]
    pub fn min_per_second(mut self, min_per_second: u32) -> Self {
        self.min_per_second = min_per_second;
        self
    }

    /// Returns the tokens of this budget, initially full.
    pub(super) fn open(self) -> Tokens {
        #[expect(clippy::cast_precision_loss, reason = "the value is below 2^24")]
        let part = self.percent.min(100_000) as f32 / 100.0;
        Tokens(Some(TpsBudget::new(TTL, self.min_per_second.min(MAX_PER_SECOND), part)))
    }
}

/// Largest number of attempts per second that does not overflow tower's budget.
const MAX_PER_SECOND: u32 = i32::MAX as u32 - 1;

/// Tokens for attempts at further instances.
#[derive(Debug)]
pub(super) struct Tokens(Option<TpsBudget>);

impl Tokens {
    /// Returns tokens that are never exhausted.
    pub(super) fn unlimited() -> Self {
        Self(None)
    }

    /// Counts a request.
    pub(super) fn count(&self) {
        self.0.iter().for_each(Budget::deposit);
    }

    /// Takes a token for one more attempt. Returns false if there is none.
    pub(super) fn take(&self) -> bool {
        self.0.as_ref().is_none_or(Budget::withdraw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(tokens: &Tokens) -> usize {
        (0..1_000).take_while(|_| tokens.take()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_of_the_requests_and_some_each_second_are_attempted_again() {
        let tokens = RetryBudget::default().open();
        assert_eq!(taken(&tokens), 100, "10 per second, for 10 s");
        (0..500).for_each(|_| tokens.count());
        assert_eq!(taken(&tokens), 100, "20 % of 500");
        tokio::time::advance(TTL * 2).await;
        assert_eq!(taken(&tokens), 100, "used tokens must be forgotten");
        let none = RetryBudget::default().percent(0).min_per_second(0).open();
        none.count();
        assert!(!none.take());
    }

    #[test]
    fn large_budgets_do_not_overflow() {
        let tokens = RetryBudget { percent: u32::MAX, min_per_second: u32::MAX }.open();
        tokens.count();
        assert!(tokens.take() && Tokens::unlimited().take());
    }
}
