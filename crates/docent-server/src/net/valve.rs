/// A rate limit that passes a few events per second and counts the suppressed ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Valve {
    most: u32,
    second: i64,
    passed: u32,
    kept_back: u64,
}

impl Valve {
    /// Creates a valve that passes up to `most` events per second.
    pub(super) fn new(most: u32) -> Self {
        Self { most, second: i64::MIN, passed: 0, kept_back: 0 }
    }

    /// Passes an event, and returns how many were suppressed before it. Returns `None` if the event itself is
    /// suppressed.
    pub(super) fn pass(&mut self, now_ms: i64) -> Option<u64> {
        let second = now_ms.div_euclid(1_000);
        if self.second != second {
            (self.second, self.passed) = (second, 0);
        }
        if self.passed == self.most {
            self.kept_back += 1;
            return None;
        }
        self.passed += 1;
        Some(std::mem::take(&mut self.kept_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_a_limit_pass_per_second_and_the_next_reports_the_rest() {
        let mut valve = Valve::new(2);
        assert_eq!([0, 10, 20, 999].map(|now| valve.pass(now)), [Some(0), Some(0), None, None]);
        assert_eq!([1_000, 1_001].map(|now| valve.pass(now)), [Some(2), Some(0)]);
    }
}
