use super::{FinalData, Shown};
use crate::client::Stage;
use bytes::Bytes;

/// State that a kept node must have now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Data of the node; `None` if the node must not exist.
    pub(super) data: Option<Bytes>,
    /// Number of the request among those of its handle; `None` for the final data, which fulfils no request.
    pub(super) number: Option<u64>,
}

impl Target {
    /// Creates the target that a handle requests, unchanged.
    pub(super) fn of(number: u64, data: Option<Bytes>) -> Self {
        Self { data, number: Some(number) }
    }

    /// Creates the target of a node that is deleted with its session, at a stage of its client's shutdown.
    /// `shown` is what other clients have chosen.
    pub(super) fn at(
        stage: Stage,
        number: u64,
        data: Option<Bytes>,
        final_data: Option<FinalData>,
        shown: Shown,
    ) -> Self {
        match (data, final_data) {
            (Some(_), _) if stage >= Stage::Deregister => Self::of(number, None),
            (Some(_), Some(chosen)) if shown == Shown::FinalData => Self::of(number, Some(chosen.data)),
            (Some(_), Some(last)) if stage >= Stage::Drain && !last.period.is_zero() => {
                Self { data: Some(last.data), number: None }
            }
            (data, _) => Self::of(number, data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_final_data_is_written_during_the_drain_or_if_another_client_chose_it() {
        let (bye, data) = (|| Some(Bytes::from("bye")), || Some(Bytes::from("data")));
        let lasting = |seconds| {
            move || Some(FinalData { data: Bytes::from("bye"), period: Duration::from_secs(seconds) })
        };
        let (second, none) = (lasting(1), lasting(0));
        let at = |stage, data, final_data| Target::at(stage, 7, data, final_data, Shown::Data);
        assert_eq!(at(Stage::Open, data(), second()), Target::of(7, data()));
        assert_eq!(at(Stage::Drain, data(), second()), Target { data: bye(), number: None });
        assert_eq!(at(Stage::Drain, data(), none()), Target::of(7, data()));
        assert_eq!(at(Stage::Drain, data(), None), Target::of(7, data()));
        assert_eq!(at(Stage::Drain, None, second()), Target::of(7, None));
        assert_eq!(at(Stage::Deregister, data(), second()), Target::of(7, None));
        let chosen = |stage, data, final_data| Target::at(stage, 7, data, final_data, Shown::FinalData);
        for stage in [Stage::Open, Stage::Drain] {
            assert_eq!(chosen(stage, data(), none()), Target::of(7, bye()));
            assert_eq!(chosen(stage, data(), None), Target::of(7, data()));
            assert_eq!(chosen(stage, None, second()), Target::of(7, None));
        }
        assert_eq!(chosen(Stage::Deregister, data(), second()), Target::of(7, None));
    }
}
