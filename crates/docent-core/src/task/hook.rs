use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Panic of a hook, that is, of user code such as a codec, a filter or a validation.
#[derive(Clone, thiserror::Error)]
#[error("the {hook} panicked")]
pub struct HookPanic {
    hook: &'static str,
    message: Option<String>,
}

impl HookPanic {
    /// Returns the text of the panic, if it has one. The text may repeat parts of a value, so do not log it
    /// if values are secret.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

/// Calls a hook. A panic is logged with the name and path of the hook, and returned as an error: the calling
/// task continues without a result.
///
/// A program that was built with `panic = "abort"` ends nevertheless.
///
/// # Errors
/// [`HookPanic`] if the hook panicked.
pub fn call_hook<R>(hook: &'static str, path: &str, code: impl FnOnce() -> R) -> Result<R, HookPanic> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        // Event: A codec, filter, validation or other hook of the application panicked; the fields `hook` and
        // `path` name it. The task that called it continues without its result.
        // Action: Fix the panic in the application; the panic message is on standard error.
        // Without client: a hook is code of the application.
        tracing::error!(target: "docent::client", hook, %path, "a hook panicked");
        HookPanic { hook, message: message(payload) }
    })
}

/// Returns the text of a panic, if its payload is text.
fn message(payload: Box<dyn Any + Send>) -> Option<String> {
    let payload = match payload.downcast::<String>() {
        Ok(message) => return Some(*message),
        Err(payload) => payload,
    };
    match payload.downcast::<&'static str>() {
        Ok(message) => Some((*message).to_owned()),
        Err(other) => {
            // Dropping the payload would run user code too, and nothing would catch its panic.
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
    fn dropping_a_panic_payload_does_not_panic() {
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
