use super::ratio::Ratio;
use std::fmt;

/// Maximum difference of two absolute figures that are reported as equal. The partly counted operations at
/// the edges of a counting run cause differences of this size.
const ROUNDING: f64 = 0.05;

/// Bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// Lower bound of the ratio of Docent's figure to the other library's.
    AtLeast(f64),
    /// Upper bound of the ratio of Docent's figure to the other library's.
    AtMost(f64),
    /// Upper bound of Docent's figure itself.
    Absolute(f64),
}

/// Judgement on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    NotMet,
    /// The median meets the target, but the target is within the range: some rounds meet it and others do
    /// not.
    MetWithinNoise,
    NotMetWithinNoise,
}

impl Target {
    /// Judges a ratio, or the figure itself for an absolute target.
    pub(super) fn verdict(self, figure: &Ratio) -> Verdict {
        let (is_met, bound) = match self {
            Self::AtLeast(bound) => (figure.median >= bound, bound),
            Self::AtMost(bound) => (figure.median <= bound, bound),
            Self::Absolute(bound) => (figure.median - ROUNDING <= bound, bound),
        };
        match (is_met, figure.spans(bound)) {
            (true, false) => Verdict::Met,
            (false, false) => Verdict::NotMet,
            (true, true) => Verdict::MetWithinNoise,
            (false, true) => Verdict::NotMetWithinNoise,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(ratio) => write!(f, "≥ {ratio} ×"),
            Self::AtMost(ratio) => write!(f, "≤ {ratio} ×"),
            Self::Absolute(figure) => write!(f, "≤ {figure}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::NotMet => "**not met**",
            Self::MetWithinNoise => "met, within noise",
            Self::NotMetWithinNoise => "**not met**, within noise",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(values: &[f64]) -> Ratio {
        Ratio::of(values.iter().copied()).unwrap()
    }

    #[test]
    fn a_target_is_judged_by_the_median() {
        assert_eq!(Target::AtLeast(1.6).verdict(&ratio(&[1.65, 1.7, 1.9])), Verdict::Met);
        assert_eq!(Target::AtLeast(1.6).verdict(&ratio(&[1.2, 1.3, 1.5])), Verdict::NotMet);
        assert_eq!(Target::AtMost(0.6).verdict(&ratio(&[0.4, 0.5, 0.55])), Verdict::Met);
        assert_eq!(Target::Absolute(6.0).verdict(&ratio(&[8.0])), Verdict::NotMet);
    }

    #[test]
    fn a_target_inside_the_range_may_be_chance() {
        assert_eq!(Target::AtLeast(1.6).verdict(&ratio(&[1.5, 1.7, 1.9])), Verdict::MetWithinNoise);
        assert_eq!(Target::AtMost(0.6).verdict(&ratio(&[0.5, 0.7, 0.9])), Verdict::NotMetWithinNoise);
    }

    #[test]
    fn a_figure_on_its_bound_is_met() {
        assert_eq!(Target::Absolute(6.0).verdict(&ratio(&[6.04])), Verdict::Met);
        assert_eq!(Target::Absolute(6.0).verdict(&ratio(&[6.1])), Verdict::NotMet);
    }
}
