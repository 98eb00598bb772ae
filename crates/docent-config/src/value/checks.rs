use super::Rejection;
use crate::CodecError;
use docent_core::recipe::call_hook;
use std::sync::Arc;

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
