use super::expire::Sessions;
use crate::raw::RawError;
use docent_proto::Request;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Pause between two requests. A session that is attached from outside expires after 10 s without a request.
const PAUSE: Duration = Duration::from_secs(1);

/// Keeps a session alive that its client has given up, until another client attaches to it.
///
/// # On drop
/// The session is left to expire.
#[derive(Debug)]
pub struct KeptAlive {
    task: JoinHandle<()>,
}

impl Sessions {
    /// Attaches to a session and keeps it alive.
    ///
    /// # Errors
    /// If the session is not known or has expired, or the server is unreachable.
    pub async fn keep_alive(&self, session_id: i64, server: SocketAddr) -> Result<KeptAlive, RawError> {
        let mut link = self.attach(session_id, server).await?;
        let task = tokio::spawn(async move {
            let ping = || Request::Exists { path: "/".into(), watch: false };
            while link.ask(ping()).await.is_ok() {
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(KeptAlive { task })
    }
}

impl Drop for KeptAlive {
    fn drop(&mut self) {
        self.task.abort();
    }
}
