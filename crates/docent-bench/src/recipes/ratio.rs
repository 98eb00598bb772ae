use std::fmt;

/// Median of several values, with the smallest and the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    count: usize,
}

impl Ratio {
    /// Returns `None` if there are no values.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max, half) = (*values.first()?, *values.last()?, values.len() / 2);
        let median =
            if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) };
        Some(Self { median, min, max, count: values.len() })
    }

    /// Returns true if a bound lies strictly between the smallest and the largest value. In this case the
    /// side of the bound on which the median lies may be chance.
    pub(super) fn spans(&self, bound: f64) -> bool {
        self.min < bound && bound < self.max
    }

    /// Returns true if Docent was better in some rounds and the other library in others.
    pub(super) fn is_within_noise(&self) -> bool {
        self.spans(1.0)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max, count } = self;
        let range = if *count > 1 { format!(" ({min:.2}..{max:.2})") } else { String::new() };
        let noise = if self.is_within_noise() { ", within noise" } else { "" };
        f.pad(&format!("{median:.2}{range}{noise}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_ones() {
        assert_eq!(Ratio::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Ratio::of([3.0, 1.0, 9.0]).unwrap().median, 3.0);
        assert_eq!(Ratio::of([]), None);
    }

    #[test]
    fn a_range_around_one_is_within_noise() {
        assert_eq!(Ratio::of([1.1, 0.9, 1.05]).unwrap().to_string(), "1.05 (0.90..1.10), within noise");
        assert_eq!(Ratio::of([1.1, 1.2]).unwrap().to_string(), "1.15 (1.10..1.20)");
    }

    #[test]
    fn one_value_has_no_range() {
        assert_eq!(Ratio::of([2.0]).unwrap().to_string(), "2.00");
    }
}
