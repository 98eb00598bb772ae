use std::time::Duration;
use tower::retry::budget::{Budget, TpsBudget};

/// Time for which a request counts.
const TTL: Duration = Duration::from_secs(10);

/// Budget of the attempts at further instances, of all requests to a [`Balanced`](crate::Balanced) service or
/// of a channel together: so that one whose instances all fail does not get a multiple of its load on top. It
/// is that of tower and finagle, a bucket of tokens over the last 10 s.
///
/// The first attempt of each request is free, and clones share one budget. Where it is used up, the error of
/// the attempt before is the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryBudget {
    /// Further attempts, in percent of the requests, at most 100,000; rounded up to a whole part of a
    /// hundred percent, as a half or a third. Default: 20.
    pub percent: u32,
    /// Further attempts a second on top of that, so that rare requests have some, too; they add up over 10 s.
    /// Default: 10.
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

    /// Tokens of this budget, all there at first.
    pub(super) fn open(self) -> Tokens {
        #[expect(clippy::cast_precision_loss, reason = "it is below 2^24")]
        let part = self.percent.min(100_000) as f32 / 100.0;
        Tokens(Some(TpsBudget::new(TTL, self.min_per_second.min(MOST), part)))
    }
}

/// Most attempts a second that tower's budget does not overflow with.
const MOST: u32 = i32::MAX as u32 - 1;

/// Tokens for attempts at further instances.
#[derive(Debug)]
pub(super) struct Tokens(Option<TpsBudget>);

impl Tokens {
    /// Tokens that are never used up.
    pub(super) fn unlimited() -> Self {
        Self(None)
    }

    /// Counts a request.
    pub(super) fn count(&self) {
        self.0.iter().for_each(Budget::deposit);
    }

    /// Takes a token for one more attempt. False when there is none.
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
        assert_eq!(taken(&tokens), 100, "10 a second, for 10 s");
        (0..500).for_each(|_| tokens.count());
        assert_eq!(taken(&tokens), 100, "20 % of 500");
        tokio::time::advance(TTL * 2).await;
        assert_eq!(taken(&tokens), 100, "what was taken is forgotten");
        let none = RetryBudget::default().percent(0).min_per_second(0).open();
        none.count();
        assert!(!none.take());
    }

    #[test]
    fn no_number_is_too_large() {
        let tokens = RetryBudget { percent: u32::MAX, min_per_second: u32::MAX }.open();
        tokens.count();
        assert!(tokens.take() && Tokens::unlimited().take());
    }
}
