use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Panic of a hook: code that the user gave, such as a codec, a filter or a validation.
#[derive(Clone, thiserror::Error)]
#[error("the {hook} panicked")]
pub struct HookPanic {
    hook: &'static str,
    message: Option<String>,
}

impl HookPanic {
    /// The text of the panic, where it has one. It may repeat parts of a value: do not log it where values
    /// are secret.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

/// Calls a hook. Its panic is logged, with the name of the hook and the path it is about, and is an error
/// here: the task that called it goes on without its answer.
///
/// A program that was built with `panic = "abort"` ends all the same.
///
/// # Errors
/// [`HookPanic`].
pub fn call_hook<R>(hook: &'static str, path: &str, code: impl FnOnce() -> R) -> Result<R, HookPanic> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        tracing::error!(hook, path, "code of the user's panicked");
        HookPanic { hook, message: message(payload) }
    })
}

/// The text that most panics have.
fn message(payload: Box<dyn Any + Send>) -> Option<String> {
    let payload = match payload.downcast::<String>() {
        Ok(message) => return Some(*message),
        Err(payload) => payload,
    };
    match payload.downcast::<&'static str>() {
        Ok(message) => Some((*message).to_owned()),
        Err(other) => {
            // Its drop is code of the user's, too, and nothing would catch that.
            std::mem::forget(other);
            None
        }
    }
}

// The message may repeat parts of a value.
impl fmt::Debug for HookPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookPanic").field("hook", &self.hook).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_that_names_the_hook_and_shows_its_message_when_asked() {
        let number = 7;
        let panics: [fn(i32); 2] = [|_| panic!("secret 7"), |number| panic!("secret {number}")];
        for code in panics {
            let panic = call_hook("filter", "/a", || code(number)).unwrap_err();
            assert_eq!(
                (panic.to_string().as_str(), panic.message()),
                ("the filter panicked", Some("secret 7"))
            );
            assert!(!format!("{panic:?}").contains("secret"));
        }
        assert_eq!(call_hook("filter", "/a", || number).unwrap(), 7);
    }

    #[test]
    fn the_drop_of_what_was_thrown_throws_nothing_more() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        let panic = call_hook("codec", "/a", || std::panic::panic_any(Bomb)).unwrap_err();
        assert_eq!(panic.message(), None);
    }
}
