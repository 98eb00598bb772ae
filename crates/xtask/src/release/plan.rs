use std::time::Duration;

/// Number of new crates that crates.io accepts at once, and the time between two more.
const BURST: usize = 5;
const BETWEEN: Duration = Duration::from_secs(10 * 60);

/// What crates.io has of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Present {
    /// This version: there is nothing to do.
    Version,
    /// Other versions only.
    Crate,
    /// Nothing, so the limit for new crates applies.
    Nothing,
}

/// A package to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) name: String,
    /// Time to wait before.
    pub(super) wait: Duration,
}

/// Returns the packages to publish, in the given order, and the time to wait before each.
pub(super) fn plan(packages: &[(&str, Present)]) -> Vec<Step> {
    let mut new = 0;
    let mut steps = Vec::new();
    for (name, present) in packages {
        let wait = match present {
            Present::Version => continue,
            Present::Crate => Duration::ZERO,
            Present::Nothing => {
                new += 1;
                if new > BURST { BETWEEN } else { Duration::ZERO }
            }
        };
        steps.push(Step { name: (*name).to_owned(), wait });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(packages: &[(&str, Present)]) -> Vec<u64> {
        plan(packages).iter().map(|step| step.wait.as_secs() / 60).collect()
    }

    #[test]
    fn five_new_crates_are_published_at_once_and_one_more_each_ten_minutes() {
        let packages = [("a", Present::Nothing); 8];
        assert_eq!(waits(&packages), [0, 0, 0, 0, 0, 10, 10, 10]);
    }

    #[test]
    fn new_versions_of_known_crates_need_not_wait() {
        let mut packages = vec![("a", Present::Nothing); 5];
        packages.extend([("b", Present::Crate), ("c", Present::Nothing)]);
        assert_eq!(waits(&packages), [0, 0, 0, 0, 0, 0, 10]);
    }

    #[test]
    fn a_repeated_run_skips_what_is_published() {
        let steps = plan(&[("a", Present::Version), ("b", Present::Nothing)]);
        assert_eq!(steps, [Step { name: "b".into(), wait: Duration::ZERO }]);
    }
}
