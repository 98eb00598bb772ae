use crate::{NotMet, eventually};
use docent_core::recipe::if_exists;
use docent_core::{Client, Error};
use std::time::Duration;

/// Number of digits that servers append to the name of a sequential node.
const DIGITS: usize = 10;

/// Waits until the line at `path` has exactly `count` contenders, including holders. Returns the names of
/// their nodes, ordered by sequence number.
///
/// The path is that of the mutex, the read-write lock or the election as `client` sees it. For a semaphore,
/// use the folder `leases` below its path. Children without a sequence number do not count.
///
/// # Errors
/// [`NotMet`] after `limit`, with the last names seen or the error of the last read.
///
/// # Cancel safety
/// This function is cancel safe.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use docent_core::Client;
/// # use docent_locks::Mutex;
/// # use docent_server::Server;
/// # use docent_testkit::in_line;
/// # use std::time::Duration;
/// let server = Server::start().await?;
/// let client = Client::connect(server.connect_string()).await?;
/// let mutex = Mutex::new(&client, "/locks/report")?;
/// let guard = mutex.acquire().await?;
///
/// let other = mutex.clone();
/// let waiting = tokio::spawn(async move { other.acquire().await });
/// in_line(&client, "/locks/report", 2, Duration::from_secs(5)).await?;
/// guard.release().await?;
/// waiting.await??;
/// # Ok(()) }
/// ```
pub async fn in_line(
    client: &Client,
    path: &str,
    count: usize,
    limit: Duration,
) -> Result<Vec<String>, NotMet> {
    let check = async || contenders(client, path).await;
    let seen = eventually(limit, check, |seen| matches!(seen, Ok(names) if names.len() == count)).await?;
    Ok(seen.unwrap_or_default())
}

/// Returns the children with a sequence number, in order; none if the folder does not exist.
async fn contenders(client: &Client, path: &str) -> Result<Vec<String>, Error> {
    let children = if_exists(client.children(path).await)?;
    let mut names = children.map_or_else(Vec::new, |children| children.names);
    names.retain(|name| number(name).is_some());
    names.sort_by_key(|name| number(name));
    Ok(names)
}

fn number(name: &str) -> Option<u32> {
    let digits = name.get(name.len().checked_sub(DIGITS)?..)?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_ten_digits_at_the_end_have_a_number() {
        assert_eq!(number("_c_9a794062-lock-0000000031"), Some(31));
        for name in ["", "limit", "lock-31", "lock-00000000x1", "ü000000001"] {
            assert_eq!(number(name), None, "{name}");
        }
    }
}
