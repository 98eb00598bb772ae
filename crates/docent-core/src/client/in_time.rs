use super::Client;
use crate::error::Error;
use crate::operation::Idempotency;
use std::future::Future;

/// Waits for `future`, at most for the operation timeout of `client`, so that waits for anything but servers
/// are limited, too.
///
/// # Errors
/// The error of `future`; `Timeout`, for `operation` on `path`.
///
/// # Cancel safety
/// As cancel safe as `future`, which is dropped when the time is up.
pub async fn in_time<T, E: From<Error>>(
    client: &Client,
    operation: &'static str,
    path: &str,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match tokio::time::timeout_at(client.deadline(), future).await {
        Ok(result) => result,
        Err(_) => Err(client.attempts(operation, path, Idempotency::Idempotent).timeout().into()),
    }
}
