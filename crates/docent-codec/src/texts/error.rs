use super::key::{self, Step};
use crate::CodecError;
use serde::de;
use std::fmt;

/// Reason why texts do not fit a type, with the key. The printed text does not repeat any part of a value.
#[derive(Clone)]
pub struct TextError {
    /// Key of the text, below `place` if that is known. Empty for the root.
    key: String,
    is_placed: bool,
    rule: String,
    detail: Option<String>,
}

impl TextError {
    /// Creates an error about the text of a key.
    pub fn of_key(key: &str, rule: impl Into<String>) -> Self {
        Self::new(rule).at(key)
    }

    pub(super) fn new(rule: impl Into<String>) -> Self {
        Self { key: String::new(), is_placed: false, rule: rule.into(), detail: None }
    }

    /// Creates an error about a text, which only the detail repeats.
    pub(super) fn of_text(rule: impl Into<String>, text: &str) -> Self {
        let rule = rule.into();
        Self { detail: Some(format!("{text:?} {rule}")), ..Self::new(rule) }
    }

    /// Places the error at `key`, unless it is already placed further below.
    pub(super) fn at(self, key: &str) -> Self {
        if self.is_placed {
            return self;
        }
        let key = match self.key.as_str() {
            "" => key.to_owned(),
            field => key::below(key, &Step::Name(field.to_owned())),
        };
        Self { key, is_placed: true, ..self }
    }

    /// Returns the key, or an empty text if the error is about all keys.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the rule that the key's text breaks: a verb and its object.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the error of a codec, with `subject`, such as `key "port"`, as the actor of its summary.
    pub fn into_codec_error(self, subject: &str) -> CodecError {
        let error = CodecError::new(format!("{subject} {}", self.rule));
        match self.detail {
            Some(detail) => error.with_detail(format!("{subject}: {detail}")),
            None => error,
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "the value {}", self.rule),
            key => write!(f, "key {key:?} {}", self.rule),
        }
    }
}

// Does not print the detail, which repeats parts of the value.
impl fmt::Debug for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextError").field("key", &self.key).field("rule", &self.rule).finish_non_exhaustive()
    }
}

impl std::error::Error for TextError {}

impl de::Error for TextError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { detail: Some(message.to_string()), ..Self::new("does not fit the type") }
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self { detail: Some(unexpected.to_string()), ..Self::new(format!("must be {expected}")) }
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Self::new(format!("has {length} elements, but must be {expected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::of_text(format!("must be one of {}", expected.join(", ")), variant)
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self { key: field.to_owned(), ..Self::new("is unknown") }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { key: field.to_owned(), ..Self::new("must have a value") }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self { key: field.to_owned(), ..Self::new("must have one value") }
    }
}
