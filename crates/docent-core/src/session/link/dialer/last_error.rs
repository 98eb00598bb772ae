use crate::session::LinkError;
use crate::session::connect_string::ServerAddress;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reason why there is no link, for the errors of operations that wait for one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastError(Arc<Mutex<NoLink>>);

#[derive(Debug, Default)]
struct NoLink {
    error: Option<Arc<LinkError>>,
    /// The step that the dialer currently waits for.
    attempt: Option<Arc<LinkError>>,
    /// The last error of each server or, if there was none yet, the step that the dialer waits for.
    by_server: HashMap<ServerAddress, Arc<LinkError>>,
}

impl LastError {
    fn lock(&self) -> MutexGuard<'_, NoLink> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, error: LinkError) {
        self.lock().error = Some(Arc::new(error));
    }

    /// Records why there is no link to `server`.
    pub(super) fn set_of(&self, server: &ServerAddress, error: LinkError) {
        let (mut no_link, error) = (self.lock(), Arc::new(error));
        no_link.by_server.insert(server.clone(), Arc::clone(&error));
        no_link.error = Some(error);
    }

    /// Records the step that the client waits for from now on, at no particular server.
    #[cfg(feature = "zookeeper-client")]
    pub(crate) fn wait_for(&self, attempt: LinkError) {
        self.lock().attempt = Some(Arc::new(attempt));
    }

    /// Records the step that the dialer waits for from now on, at `server`. An error of an earlier round is
    /// more informative, and stays.
    pub(super) fn wait_for_server(&self, server: &ServerAddress, attempt: LinkError) {
        let (mut no_link, attempt) = (self.lock(), Arc::new(attempt));
        let known = no_link.by_server.entry(server.clone()).or_insert_with(|| Arc::clone(&attempt));
        if known.is_step() {
            *known = Arc::clone(&attempt);
        }
        no_link.attempt = Some(attempt);
    }

    /// Records that there is a link.
    pub(crate) fn clear(&self) {
        *self.lock() = NoLink::default();
    }

    pub(crate) fn get(&self) -> Option<Arc<LinkError>> {
        self.lock().error.clone()
    }

    /// Returns the last error or, if there was none yet, the step that the dialer waits for.
    pub(crate) fn current(&self) -> Option<Arc<LinkError>> {
        let no_link = self.lock();
        no_link.error.clone().or_else(|| no_link.attempt.clone())
    }

    /// Returns each of `servers` with the reason why there is no link to it, for an error's text. Returns
    /// `None` if there is a link, or no reason is known yet.
    pub(crate) fn of_each(&self, servers: &[ServerAddress]) -> Option<String> {
        let no_link = self.lock();
        if no_link.by_server.is_empty() {
            return no_link.error.as_ref().or(no_link.attempt.as_ref()).map(|error| error.chain());
        }
        let reasons = servers.iter().map(|server| match no_link.by_server.get(server) {
            Some(error) => format!("{server}: {}", error.reason()),
            None => format!("{server}: not tried yet"),
        });
        Some(reasons.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn each_server_has_its_last_error_or_else_its_current_step() {
        let servers = ServerAddress::all_of("zk1,zk2,zk3,zk4").unwrap();
        let (last_error, name) = (LastError::default(), |i: usize| servers[i].to_string());
        assert_eq!(last_error.of_each(&servers), None);
        for server in [0, 1] {
            last_error.wait_for_server(&servers[server], LinkError::Connecting { server: name(server) });
        }
        let refused = Arc::new(io::ErrorKind::ConnectionRefused.into());
        last_error.set_of(&servers[0], LinkError::Dial { server: name(0), source: refused });
        last_error.wait_for_server(&servers[0], LinkError::Connecting { server: name(0) });
        last_error.wait_for_server(&servers[1], LinkError::Greeting { server: name(1) });
        last_error.set_of(&servers[2], LinkError::DialTimeout { server: name(2), seconds: 2.0 });
        assert_eq!(
            last_error.of_each(&servers).unwrap(),
            "zk1:2181: connection refused, zk2:2181: connected, but no answer to the handshake yet, \
             zk3:2181: no connection within 2.000 s, zk4:2181: not tried yet"
        );
        last_error.clear();
        assert_eq!(last_error.of_each(&servers), None);
    }
}
