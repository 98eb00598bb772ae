use super::Rejection;
use crate::{Codec, PublishError};
use bytes::Bytes;
use docent_core::recipe::call_hook;
use std::sync::Arc;

pub(crate) type Validate<T> = dyn Fn(&T) -> Result<(), String> + Send + Sync;

/// Codec and validation that read and check values.
pub(crate) struct ValueFormat<T> {
    /// Node that holds the values.
    pub(crate) path: Arc<str>,
    pub(crate) codec: Arc<dyn Codec<T>>,
    pub(crate) validate: Option<Arc<Validate<T>>>,
    /// Name of the configuration in metrics.
    pub(crate) metrics_name: Option<Arc<str>>,
    /// True if the messages of the codec and the validation are printed.
    pub(crate) shows_detail: bool,
}

impl<T: 'static> ValueFormat<T> {
    /// Returns the value of a node with `data`, if it is valid.
    pub(crate) fn read(&self, data: &Bytes) -> Result<T, Rejection> {
        self.decode(data).map_err(|refusal| self.shown(refusal))
    }

    fn shown(&self, refusal: Rejection) -> Rejection {
        if self.shows_detail { refusal.shown() } else { refusal }
    }

    fn decode(&self, data: &Bytes) -> Result<T, Rejection> {
        let value = self.hook("codec", || self.codec.decode(data))?;
        let value = value.map_err(|error| Rejection::codec(&error))?;
        self.validate(&value)?;
        Ok(value)
    }

    /// Checks a value that was not decoded.
    pub(crate) fn check(&self, value: &T) -> Result<(), Rejection> {
        self.validate(value).map_err(|refusal| self.shown(refusal))
    }

    fn validate(&self, value: &T) -> Result<(), Rejection> {
        match &self.validate {
            Some(validate) => self.hook("validation", || validate(value))?.map_err(Rejection::validation),
            None => Ok(()),
        }
    }

    /// Returns the data for a value, and the value as readers will decode it. A value that they would reject
    /// is rejected here.
    pub(crate) fn write(&self, value: &T) -> Result<(Bytes, T), PublishError> {
        let data = self.hook("codec", || self.codec.encode(value));
        let data = data.and_then(|data| data.map_err(|error| Rejection::codec(&error)));
        let data = data.map_err(|refusal| PublishError::Refused(self.shown(refusal)))?;
        let read = self.read(&data).map_err(PublishError::Refused)?;
        Ok((data, read))
    }

    /// Returns the same format for another node.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self { path: path.into(), ..self.clone() }
    }

    fn hook<R>(&self, hook: &'static str, code: impl FnOnce() -> R) -> Result<R, Rejection> {
        call_hook(hook, &self.path, code).map_err(|panic| Rejection::panicked(&panic))
    }
}

impl<T> Clone for ValueFormat<T> {
    fn clone(&self) -> Self {
        Self {
            path: Arc::clone(&self.path),
            codec: Arc::clone(&self.codec),
            validate: self.validate.clone(),
            metrics_name: self.metrics_name.clone(),
            shows_detail: self.shows_detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CodecError, Json, RejectionReason};

    fn format(validate: fn(&u32) -> Result<(), String>) -> ValueFormat<u32> {
        ValueFormat {
            path: "/a".into(),
            codec: Arc::new(Json::new()),
            validate: Some(Arc::new(validate)),
            metrics_name: None,
            shows_detail: false,
        }
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
        let open = ValueFormat { shows_detail: true, ..strict };
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
        let format = ValueFormat {
            path: "/a".into(),
            codec: Arc::new(OneWay),
            validate: None,
            metrics_name: None,
            shows_detail: false,
        };
        assert!(matches!(format.write(&f64::NAN), Err(PublishError::Refused(_))));
    }
}
