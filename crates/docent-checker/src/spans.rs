use std::time::Duration;

/// Ordered spans of time that neither overlap nor touch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Vec<Span>);

/// A span of time, including both ends; `until` is [`Duration::MAX`] if the span does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

impl Spans {
    pub(crate) fn new(mut spans: Vec<Span>) -> Self {
        spans.sort_unstable();
        let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.from <= last.until => last.until = last.until.max(span.until),
                _ => merged.push(span),
            }
        }
        Self(merged)
    }

    /// The span that contains a time.
    pub(crate) fn at(&self, at: Duration) -> Option<Span> {
        self.ending_from(at).first().copied().filter(|span| span.from <= at)
    }

    /// The last span that began by a time.
    pub(crate) fn last_by(&self, at: Duration) -> Option<Span> {
        self.0[..self.0.partition_point(|span| span.from <= at)].last().copied()
    }

    /// Returns true if no span overlaps the time between two moments.
    pub(crate) fn spare(&self, from: Duration, until: Duration) -> bool {
        self.ending_from(from).first().is_none_or(|span| span.from > until)
    }

    /// The first time, at least `length` after `from`, that ends a span-free period of `length`; `None` if
    /// there is none.
    pub(crate) fn quiet(&self, from: Duration, length: Duration) -> Option<Duration> {
        let mut start = from;
        for span in self.ending_from(from) {
            if span.from > start.saturating_add(length) {
                break;
            }
            if span.until == Duration::MAX {
                return None;
            }
            start = span.until;
        }
        Some(start.saturating_add(length))
    }

    /// Total length of the spans between two moments.
    pub(crate) fn covered(&self, from: Duration, until: Duration) -> Duration {
        let inside = self.between(from, until);
        inside.map(|span| span.until.min(until).saturating_sub(span.from.max(from))).sum()
    }

    /// The spans that overlap the time between two moments.
    pub(crate) fn between(&self, from: Duration, until: Duration) -> impl Iterator<Item = Span> {
        self.ending_from(from).iter().copied().take_while(move |span| span.from < until)
    }

    fn ending_from(&self, at: Duration) -> &[Span] {
        &self.0[self.0.partition_point(|span| span.until < at)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn spans(spans: &[(u64, u64)]) -> Spans {
        Spans::new(spans.iter().map(|(from, until)| Span { from: ms(*from), until: ms(*until) }).collect())
    }

    #[test]
    fn overlapping_spans_are_one() {
        let spans = spans(&[(30, 40), (10, 20), (15, 25)]);
        assert_eq!(spans.at(ms(22)), Some(Span { from: ms(10), until: ms(25) }));
        assert_eq!(spans.at(ms(27)), None);
        assert_eq!(spans.covered(ms(20), ms(35)), ms(10));
    }

    #[test]
    fn a_time_without_spans_that_is_long_enough_is_quiet() {
        let spans = spans(&[(10, 20), (25, 40)]);
        assert_eq!(spans.quiet(ms(0), ms(9)), Some(ms(9)));
        assert_eq!(spans.quiet(ms(5), ms(6)), Some(ms(46)));
        assert_eq!(spans.quiet(ms(12), ms(4)), Some(ms(24)));
        assert!(spans.spare(ms(21), ms(24)));
        assert!(!spans.spare(ms(20), ms(24)));
    }

    #[test]
    fn after_an_endless_span_it_is_never_quiet() {
        let spans = Spans::new(vec![Span { from: ms(10), until: Duration::MAX }]);
        assert_eq!(spans.quiet(ms(5), ms(10)), None);
        assert_eq!(spans.quiet(ms(5), ms(1)), Some(ms(6)));
    }
}
