use super::FinalData;
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
    pub(super) fn at(stage: Stage, number: u64, data: Option<Bytes>, final_data: Option<FinalData>) -> Self {
        match (data, final_data) {
            (data, _) if stage < Stage::Drain => Self::of(number, data),
            (Some(_), _) if stage >= Stage::Deregister => Self::of(number, None),
            (Some(_), Some(final_data)) => Self { data: Some(final_data.data), number: None },
            (data, _) => Self::of(number, data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_final_data_is_written_only_during_the_drain_and_fulfils_no_request() {
        let final_data = || Some(FinalData { data: Bytes::from("bye"), period: Duration::from_secs(1) });
        let data = || Some(Bytes::from("data"));
        let last = Target { data: Some(Bytes::from("bye")), number: None };
        assert_eq!(Target::at(Stage::Open, 7, data(), final_data()), Target::of(7, data()));
        assert_eq!(Target::at(Stage::Drain, 7, data(), final_data()), last);
        assert_eq!(Target::at(Stage::Drain, 7, data(), None), Target::of(7, data()));
        assert_eq!(Target::at(Stage::Drain, 7, None, final_data()), Target::of(7, None));
        assert_eq!(Target::at(Stage::Deregister, 7, data(), final_data()), Target::of(7, None));
    }
}
