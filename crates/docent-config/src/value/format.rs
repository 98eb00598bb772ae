use super::{Rejection, Revision};
use crate::{Codec, CodecError, PublishError};
use bytes::Bytes;
use docent_core::recipe::call_hook;
use std::sync::Arc;

/// Codec and validation that read and check values.
pub(crate) struct ValueFormat<T> {
    pub(crate) codec: Arc<dyn Codec<T>>,
    pub(crate) checks: Checks<T>,
    /// Name of the configuration in metrics.
    pub(crate) metrics_name: Option<Arc<str>>,
}

impl<T: 'static> ValueFormat<T> {
    /// Creates a format without validation.
    pub(crate) fn new(path: &str, codec: Arc<dyn Codec<T>>) -> Self {
        let checks = Checks { path: path.into(), validate: None, shows_detail: false };
        Self { codec, checks, metrics_name: None }
    }

    /// Returns the value of a node with `data`, if it is valid.
    pub(crate) fn read(&self, data: &Bytes) -> Result<T, Rejection> {
        self.checks.read(|| self.codec.decode(data))
    }

    /// Returns the value of a node's `revision` with `data`, if it is valid.
    pub(crate) fn read_revision(&self, revision: Revision, data: &Bytes) -> Result<T, Rejection> {
        self.read(data).map_err(|refusal| refusal.of(revision))
    }

    /// Returns the data for a value, and the value as readers will decode it. A value that they would reject
    /// is rejected here.
    pub(crate) fn write(&self, value: &T) -> Result<(Bytes, T), PublishError> {
        let data = self.checks.run("codec", || self.codec.encode(value)).map_err(PublishError::Refused)?;
        let read = self.read(&data).map_err(PublishError::Refused)?;
        Ok((data, read))
    }

    /// Returns the same format for another node.
    pub(crate) fn at(&self, path: &str) -> Self {
        let mut format = self.clone();
        format.checks.path = path.into();
        format
    }
}

impl<T> Clone for ValueFormat<T> {
    fn clone(&self) -> Self {
        let (codec, checks) = (Arc::clone(&self.codec), self.checks.clone());
        Self { codec, checks, metrics_name: self.metrics_name.clone() }
    }
}

pub(crate) type Validate<T> = dyn Fn(&T) -> Result<(), String> + Send + Sync;

/// Decoding and validation of values, with the text of their rejections.
pub(crate) struct Checks<T> {
    /// Node that holds the values.
    pub(crate) path: Arc<str>,
    pub(crate) validate: Option<Arc<Validate<T>>>,
    /// True if the messages of the codec and the validation are printed.
    pub(crate) shows_detail: bool,
}

impl<T: 'static> Checks<T> {
    /// Returns the value that `decode` returns, if it is valid.
    pub(crate) fn read(&self, decode: impl FnOnce() -> Result<T, CodecError>) -> Result<T, Rejection> {
        let value = self.run("codec", decode)?;
        self.check(&value)?;
        Ok(value)
    }

    /// Checks a value that was not decoded.
    pub(crate) fn check(&self, value: &T) -> Result<(), Rejection> {
        let Some(validate) = &self.validate else { return Ok(()) };
        let valid = self.hook("validation", || validate(value));
        valid.and_then(|valid| valid.map_err(Rejection::validation)).map_err(|refusal| self.shown(refusal))
    }

    /// Returns what `code`, a part of a codec, returns.
    pub(crate) fn run<R>(
        &self,
        hook: &'static str,
        code: impl FnOnce() -> Result<R, CodecError>,
    ) -> Result<R, Rejection> {
        let done = self.hook(hook, code);
        let done = done.and_then(|done| done.map_err(|error| Rejection::codec(&error)));
        done.map_err(|refusal| self.shown(refusal))
    }

    fn shown(&self, refusal: Rejection) -> Rejection {
        if self.shows_detail { refusal.shown() } else { refusal }
    }

    fn hook<R>(&self, hook: &'static str, code: impl FnOnce() -> R) -> Result<R, Rejection> {
        call_hook(hook, &self.path, code).map_err(|panic| Rejection::panicked(&panic))
    }
}

impl<T> Clone for Checks<T> {
    fn clone(&self) -> Self {
        let (path, validate) = (Arc::clone(&self.path), self.validate.clone());
        Self { path, validate, shows_detail: self.shows_detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CodecError, Json, RejectionReason};

    fn format(validate: fn(&u32) -> Result<(), String>) -> ValueFormat<u32> {
        let mut format = ValueFormat::new("/a", Arc::new(Json::new()));
        format.checks.validate = Some(Arc::new(validate));
        format
    }

    #[test]
    fn a_value_is_decoded_then_validated() {
        let small = format(|value| if *value < 10 { Ok(()) } else { Err("must be below 10".into()) });
        assert_eq!(small.read(&Bytes::from_static(b"9")).unwrap(), 9);
        assert_eq!(small.read(&Bytes::from_static(b"-")).unwrap_err().reason(), RejectionReason::Codec);
        let refusal = small.read(&Bytes::from_static(b"10")).unwrap_err();
        assert_eq!((refusal.reason(), refusal.detail()), (RejectionReason::Validation, "must be below 10"));
        assert_eq!(refusal.to_string(), "the value: rejected by validation");
        assert!(matches!(small.write(&11), Err(PublishError::Refused(_))));
        assert_eq!(small.write(&3).unwrap(), (Bytes::from_static(b"3"), 3));
    }

    #[test]
    fn a_rejection_prints_its_detail_only_if_enabled() {
        let strict = format(|value| Err(format!("{value} is too much")));
        let data = Bytes::from_static(b"9");
        assert_eq!(strict.read(&data).unwrap_err().to_string(), "the value: rejected by validation");
        let mut open = strict;
        open.checks.shows_detail = true;
        let refusal = open.read(&data).unwrap_err();
        assert_eq!(refusal.to_string(), "the value: rejected by validation: 9 is too much");
        assert_eq!(refusal.detail(), "9 is too much");
        let refusal = open.write(&7).unwrap_err();
        assert!(refusal.to_string().ends_with("rejected by validation: 7 is too much"), "{refusal}");
    }

    #[test]
    fn a_panic_is_a_refusal() {
        let panics = format(|_| panic!("planted"));
        let refusal = panics.read(&Bytes::from_static(b"9")).unwrap_err();
        assert_eq!((refusal.reason(), refusal.detail()), (RejectionReason::Panicked, "planted"));
        assert_eq!(refusal.to_string(), "the value: the validation panicked");
    }

    struct OneWay;

    impl Codec<f64> for OneWay {
        fn encode(&self, value: &f64) -> Result<Bytes, CodecError> {
            Json::new().encode(value)
        }

        fn decode(&self, data: &Bytes) -> Result<f64, CodecError> {
            Json::new().decode(data)
        }
    }

    #[test]
    fn a_value_that_readers_cannot_decode_is_not_written() {
        let format = ValueFormat::new("/a", Arc::new(OneWay));
        assert!(matches!(format.write(&f64::NAN), Err(PublishError::Refused(_))));
    }
}
