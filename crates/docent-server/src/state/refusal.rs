use docent_proto::Code;

/// A limit that a client exceeded, and the value that it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Name of the limit in [`Limits`](crate::Limits).
    pub(crate) rule: &'static str,
    pub(crate) value: usize,
    pub(crate) limit: usize,
}

impl Refusal {
    /// Returns a refusal if the value exceeds the limit.
    pub(crate) fn over_limit(rule: &'static str, value: usize, limit: usize) -> Option<Self> {
        (value > limit).then_some(Self { rule, value, limit })
    }
}

/// The first limit that a request exceeded, if any.
#[derive(Debug, Default)]
pub(crate) struct Notes(Option<Refusal>);

impl Notes {
    /// Checks that a value is within a limit, and records a refusal otherwise.
    ///
    /// # Errors
    /// [`Code::QUOTA_EXCEEDED`] if the value exceeds the limit.
    pub(crate) fn admit(&mut self, rule: &'static str, value: usize, limit: usize) -> Result<(), Code> {
        let refusal = Refusal::over_limit(rule, value, limit);
        self.0 = self.0.or(refusal);
        if refusal.is_none() { Ok(()) } else { Err(Code::QUOTA_EXCEEDED) }
    }

    pub(crate) fn into_refusal(self) -> Option<Refusal> {
        self.0
    }
}
