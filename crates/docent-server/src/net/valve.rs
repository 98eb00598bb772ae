/// Valve that lets a few through in each second, and counts the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Valve {
    most: u32,
    second: i64,
    passed: u32,
    kept_back: u64,
}

impl Valve {
    /// A valve for up to `most` in a second.
    pub(super) fn new(most: u32) -> Self {
        Self { most, second: i64::MIN, passed: 0, kept_back: 0 }
    }

    /// Lets one through, and tells how many were kept back before it; `None` when it is kept back itself.
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
    fn so_many_pass_in_a_second_and_the_next_tells_of_the_others() {
        let mut valve = Valve::new(2);
        assert_eq!([0, 10, 20, 999].map(|now| valve.pass(now)), [Some(0), Some(0), None, None]);
        assert_eq!([1_000, 1_001].map(|now| valve.pass(now)), [Some(2), Some(0)]);
    }
}
