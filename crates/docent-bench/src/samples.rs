use std::fmt;

/// Values of one measure, in order of arrival.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the value that `share` of all values do not exceed, or zero if there are no values.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the share is between 0 and 1"
        )]
        let index = (last as f64 * share).round() as usize;
        sorted.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The ratios of these values to the other side's, round by round, so differences between rounds cancel
    /// out.
    pub(crate) fn ratios(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect()
    }

    fn min(&self) -> f64 {
        self.quantile(0.0)
    }

    fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// Returns true if the ranges overlap, so that either may be smaller by chance.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.min() <= other.max() && other.min() <= self.max()
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.median() < 100.0 { 1 } else { 0 };
        let text = format!("{:.digits$} ({:.digits$}..{:.digits$})", self.median(), self.min(), self.max());
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_smallest_and_largest() {
        let samples = Samples::from_iter([30.0, 10.0, 20.25]);
        assert_eq!(samples.to_string(), "20.2 (10.0..30.0)");
        assert_eq!(Samples::default().median(), 0.0);
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let ratios = Samples::from_iter([2.0, 30.0, 9.0]).ratios(&Samples::from_iter([1.0, 10.0, 9.0]));
        assert_eq!(ratios.median(), 2.0);
    }

    #[test]
    fn ranges_that_touch_overlap() {
        let low = Samples::from_iter([1.0, 2.0]);
        assert!(low.overlaps(&Samples::from_iter([2.0, 3.0])));
        assert!(!low.overlaps(&Samples::from_iter([2.1, 3.0])));
    }
}
