//! Conversion of every public error into `docent::Error` by `?`.

use docent::config::{CounterError, NodeError, PublishError, SubscribeError};
use docent::discovery::PickError;
use docent::guard::{Fence, Lost, LostReason, ParseFenceError};
use docent::locks::{AcquireError, BarrierError, ParseTurnFenceError, TurnFence};
use docent::node::DeleteAllError;
use docent::queue::{AckError, CodecError, PeekError, PutError};
use docent::recipe::WaitError;
use docent::server::{KeepError, Server, StartError};
use docent::testkit::{ExpireError, Missing};
use docent::{Client, Error, ErrorKind, Mutex};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Checks the conversion of errors into an error of `kind`: the text, the path, the source and both answers
/// are those of the error before.
macro_rules! converts {
    ($($error:expr => $type:ty, $kind:expr);+ $(;)?) => {$({
        let error: $type = $error;
        let before = (error.to_string(), error.path().map(str::to_owned));
        let answers = (error.is_retryable(), error.may_have_applied());
        let error = converted(error);
        assert_eq!(error.kind(), $kind, "{error}");
        assert_eq!((error.to_string(), error.path().map(str::to_owned)), before);
        assert_eq!((error.is_retryable(), error.may_have_applied()), answers, "{error}");
        assert!(error.downcast_ref::<$type>().is_some(), "{error:?}");
    })+};
}

/// Converts as a user's function does.
fn converted<E>(error: E) -> Error
where
    Error: From<E>,
{
    let function = || -> Result<(), Error> { Err(error)? };
    function().expect_err("an error")
}

/// An error of the client in a variant `Core` is the converted error.
macro_rules! unwraps {
    ($($type:ty),+ $(,)?) => {$({
        let core = Error::too_large("set", 5, 4).at("/a");
        let error = converted(<$type>::from(core.clone()));
        assert_eq!((error.kind(), error.path(), error.to_string()), (core.kind(), Some("/a"), core.to_string()));
    })+};
}

#[test]
fn a_core_error_is_unwrapped() {
    unwraps!(
        AcquireError,
        AckError,
        BarrierError,
        CounterError,
        NodeError,
        PeekError,
        PublishError,
        PutError
    );
    unwraps!(SubscribeError, WaitError);
}

#[test]
fn errors_of_recipes_convert() {
    let lost = Lost { reason: LostReason::LeaseExpired };
    let path = || "/a".to_owned();
    let full = || PutError::Full { length: 3, capacity: 2 };
    let codec = || CodecError::new("no");
    let unknown = || Error::of_recipe(ErrorKind::OutcomeUnknown, "put", codec()).at("/q");
    converts! {
        lost => Lost, ErrorKind::Lost(lost.reason);
        AcquireError::Lost(lost) => AcquireError, ErrorKind::Lost(lost.reason);
        AcquireError::WouldDeadlock => AcquireError, ErrorKind::InvalidInput;
        BarrierError::TimedOut { operation: "wait", path: path() } => BarrierError, ErrorKind::NotAcquired;
        WaitError::Gone => WaitError, ErrorKind::SessionChanged;
        PublishError::Conflict => PublishError, ErrorKind::BadVersion;
        PublishError::NoSuchRevision => PublishError, ErrorKind::InvalidInput;
        SubscribeError::Missing { path: path() } => SubscribeError, ErrorKind::Unavailable;
        NodeError::Exists { path: path() } => NodeError, ErrorKind::NodeExists;
        CounterError::Corrupted { path: path(), found: 1, wanted: 8 } => CounterError, ErrorKind::InvalidData;
        CounterError::Overflow { path: path() } => CounterError, ErrorKind::InvalidInput;
        PickError::NoInstance { service: "orders".to_owned() } => PickError, ErrorKind::Unavailable;
        full() => PutError, ErrorKind::Unavailable;
        PutError::Encode(codec()) => PutError, ErrorKind::InvalidData;
        PutError::SequenceExhausted => PutError, ErrorKind::SequenceExhausted;
        AckError::Lost(lost) => AckError, ErrorKind::Lost(lost.reason);
        AckError::Put(full()) => AckError, ErrorKind::Unavailable;
        AckError::Put(PutError::Core(unknown())) => AckError, ErrorKind::OutcomeUnknown;
        PeekError::Undecodable { item: "item".to_owned(), detail: "no".to_owned() } => PeekError, ErrorKind::InvalidData;
        StartError::Stopped => StartError, ErrorKind::Closed;
    }
}

#[test]
fn errors_without_answers_convert() {
    let error = converted("x".parse::<Fence>().unwrap_err());
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.downcast_ref::<ParseFenceError>().is_some());
    let error = converted("x".parse::<TurnFence>().unwrap_err());
    assert!(error.kind() == ErrorKind::InvalidInput && error.downcast_ref::<ParseTurnFenceError>().is_some());
    let error = converted(CodecError::new("no"));
    assert!(error.kind() == ErrorKind::InvalidData && error.downcast_ref::<CodecError>().is_some());
    assert_eq!(error.to_string(), "no");
    assert_eq!(converted(ExpireError::Unknown(7)).kind(), ErrorKind::InvalidInput);
    assert_eq!(converted(docent::testkit::StartError::Missing(Missing::Java)).kind(), ErrorKind::Unsupported);
}

#[cfg(feature = "tower")]
#[test]
fn errors_of_calls_convert() {
    use docent::discovery::CallError;
    let failed = |unsent| CallError::Failed {
        service: "orders".to_owned(),
        id: "host-7".to_owned(),
        error: "reset",
        unsent,
    };
    converts! {
        failed(true) => CallError<&str>, ErrorKind::Unavailable;
        failed(false) => CallError<&str>, ErrorKind::OutcomeUnknown;
    }
}

/// An error whose source is the reason why no server can be reached.
async fn unreachable() -> Error {
    let client = Client::builder("127.0.0.1:1").operation_timeout(Duration::from_secs(1)).build();
    client.expect("a client").get("/q").await.expect_err("no server listens")
}

#[tokio::test]
async fn the_cause_of_a_wrapped_error_stays_in_the_chain() {
    let core = unreachable().await;
    let cause = std::error::Error::source(&core).expect("a source").to_string();
    let error = converted(AckError::Put(PutError::Core(core)));
    assert_eq!(std::error::Error::source(&error).expect("a source").to_string(), cause);
    assert_eq!((error.kind(), error.path()), (ErrorKind::Timeout, Some("/q")));
}

#[tokio::test]
async fn the_error_of_a_lock_that_was_not_acquired_names_the_holder_once() {
    let server = Server::start().await.unwrap();
    let client = Client::builder(server.connect_string()).identity("worker 7").connect().await.unwrap();
    let mutex = Mutex::new(&client, "/l").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let late = mutex.acquire_timeout(Duration::from_secs(1)).await.unwrap_err();
    converts! { late.clone() => AcquireError, ErrorKind::NotAcquired }
    let error = converted(late);
    let sources = std::iter::successors(std::error::Error::source(&error), |error| error.source());
    let chain = sources.fold(error.to_string(), |text, error| format!("{text}: {error}"));
    assert_eq!(chain.matches("worker 7").count(), 1, "{chain}");
    guard.release().await.unwrap();
    let missing: DeleteAllError = client.delete_all("a").await.unwrap_err();
    converts! { missing => DeleteAllError, ErrorKind::InvalidInput }
    client.close().await;
}

#[tokio::test]
async fn errors_of_the_embedded_server_convert() {
    let not_kept = async || Server::builder().keep("/dev/null").start().await.unwrap_err();
    converts! { not_kept().await => StartError, ErrorKind::InvalidInput }
    let StartError::Keep(error) = not_kept().await else { panic!("not an error of the file") };
    converts! { error => KeepError, ErrorKind::InvalidInput }
}

/// Crates that the facade exports.
const CRATES: [&str; 10] =
    ["codec", "config", "core", "discovery", "election", "inspect", "locks", "queue", "server", "testkit"];

/// Public types that users of the facade do not get as an error.
const INTERNAL: [&str; 3] = ["PlantError", "RawError", "TextError"];

#[test]
fn every_public_error_converts() {
    let mut found = BTreeSet::new();
    let mut sources = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for name in CRATES {
        read(&root.join(format!("docent-{name}/src")), &mut found, &mut sources);
    }
    assert!(found.len() > 15, "{found:?}");
    let missing: Vec<_> = found.iter().filter(|error| !is_converted(error, &sources)).collect();
    assert!(missing.is_empty(), "add `From<…> for docent_core::Error` and a row above: {missing:?}");
}

/// Returns whether the sources convert `error` into the error of the client.
fn is_converted(error: &str, sources: &str) -> bool {
    let start = format!("From<{error}");
    let mut found = sources.match_indices(&start);
    let end = |at: usize| sources[at..].split('{').next().unwrap_or_default();
    INTERNAL.contains(&error)
        || found
            .any(|(at, _)| end(at).contains("> for Error ") || end(at).contains("> for docent_core::Error "))
}

/// Collects the names of public errors from the files below `folder`, and all sources.
fn read(folder: &Path, found: &mut BTreeSet<String>, sources: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            read(&entry, found, sources);
            continue;
        }
        let text = fs::read_to_string(&entry).expect("a text");
        let declared = text.lines().filter_map(|line| {
            let name = line.strip_prefix("pub enum ").or_else(|| line.strip_prefix("pub struct "))?;
            name.split(|letter: char| !letter.is_alphanumeric()).next()
        });
        found.extend(declared.filter(|name| name.len() > 5 && name.ends_with("Error")).map(str::to_owned));
        sources.push_str(&text);
    }
}
