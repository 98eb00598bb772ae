use docent_core::Error;
use std::fmt;

/// Result of the work of [`Election::run`](crate::Election::run), which may be any of:
///
/// - `Result<T, E>`, of which only the error counts; `E` must implement `From<`[`Error`]`>`.
/// - `()`, for work that cannot fail.
/// - the type of a block that never ends, such as `loop { … }` without `break`.
pub trait WorkResult {
    /// Error of the work, and of the run: [`Error`] if the work cannot fail.
    type Error: From<Error> + fmt::Display;

    /// Returns the error, if there is one.
    ///
    /// # Errors
    /// The error of the work.
    fn into_result(self) -> Result<(), Self::Error>;
}

impl<T, E: From<Error> + fmt::Display> WorkResult for Result<T, E> {
    type Error = E;

    fn into_result(self) -> Result<(), E> {
        self.map(drop)
    }
}

impl WorkResult for () {
    type Error = Error;

    fn into_result(self) -> Result<(), Error> {
        Ok(())
    }
}

impl WorkResult for Never {
    type Error = Error;

    fn into_result(self) -> Result<(), Error> {
        self
    }
}

/// The type `!`, which cannot be written as a type argument.
type Never = <fn() -> ! as Returns>::Output;

/// Names the type that a function returns.
pub trait Returns {
    /// The returned type.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}
