use super::Farewell;
use crate::client::Stage;
use bytes::Bytes;

/// State that a kept node must have now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// Its data; `None` when it must be gone.
    pub(super) data: Option<Bytes>,
    /// Number of the wish among those of its handle; `None` for its last words, which fulfil none of them.
    pub(super) number: Option<u64>,
}

impl Wish {
    /// The wish of a handle, as it is.
    pub(super) fn of(number: u64, data: Option<Bytes>) -> Self {
        Self { data, number: Some(number) }
    }

    /// The wish of a node that goes with its session, at a stage of its client's shutdown.
    pub(super) fn at(stage: Stage, number: u64, data: Option<Bytes>, farewell: Option<Farewell>) -> Self {
        match (data, farewell) {
            (data, _) if stage < Stage::Drain => Self::of(number, data),
            (Some(_), _) if stage >= Stage::Deregister => Self::of(number, None),
            (Some(_), Some(farewell)) => Self { data: Some(farewell.data), number: None },
            (data, _) => Self::of(number, data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn last_words_are_said_at_the_drain_alone_and_fulfil_no_wish() {
        let farewell = || Some(Farewell { data: Bytes::from("bye"), period: Duration::from_secs(1) });
        let data = || Some(Bytes::from("data"));
        let last = Wish { data: Some(Bytes::from("bye")), number: None };
        assert_eq!(Wish::at(Stage::Open, 7, data(), farewell()), Wish::of(7, data()));
        assert_eq!(Wish::at(Stage::Drain, 7, data(), farewell()), last);
        assert_eq!(Wish::at(Stage::Drain, 7, data(), None), Wish::of(7, data()));
        assert_eq!(Wish::at(Stage::Drain, 7, None, farewell()), Wish::of(7, None));
        assert_eq!(Wish::at(Stage::Deregister, 7, data(), farewell()), Wish::of(7, None));
    }
}
