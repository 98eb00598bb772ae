use docent_proto::Code;

/// Limit that a client met, with the value that it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The name of the limit in [`Limits`](crate::Limits).
    pub(crate) rule: &'static str,
    pub(crate) value: usize,
    pub(crate) limit: usize,
}

impl Refusal {
    /// The refusal of a value that is over a limit.
    pub(crate) fn over(rule: &'static str, value: usize, limit: usize) -> Option<Self> {
        (value > limit).then_some(Self { rule, value, limit })
    }
}

/// Notes of a request's refusals: the first one counts.
#[derive(Debug, Default)]
pub(crate) struct Notes(Option<Refusal>);

impl Notes {
    /// Checks that a value is within a limit, and notes it if it is not.
    ///
    /// # Errors
    /// [`Code::QUOTA_EXCEEDED`] when it is not.
    pub(crate) fn admit(&mut self, rule: &'static str, value: usize, limit: usize) -> Result<(), Code> {
        let refusal = Refusal::over(rule, value, limit);
        self.0 = self.0.or(refusal);
        if refusal.is_none() { Ok(()) } else { Err(Code::QUOTA_EXCEEDED) }
    }

    pub(crate) fn into_refusal(self) -> Option<Refusal> {
        self.0
    }
}
