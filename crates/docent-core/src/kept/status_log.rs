use super::Shown;
use crate::error::{Error, ErrorKind};
use crate::telemetry::Instruments;
use std::sync::Arc;

/// State of a kept node as reported in the log and metrics: each change is reported once, however often the
/// node is read.
///
/// # On drop
/// The node no longer counts as a kept node.
pub(super) struct StatusLog {
    instruments: Arc<Instruments>,
    path: String,
    last: Last,
    /// True if the node counts as wanted.
    counts: bool,
    /// True while it counts as present.
    counted: bool,
}

#[derive(PartialEq)]
enum Last {
    Absent,
    /// Present in the session of this generation.
    Present(u64),
    /// A node of another session occupies the path.
    Waiting(i64),
    /// That node outlasts the time its session may take to end.
    Occupied(i64),
    Refused(ErrorKind),
}

impl StatusLog {
    /// A node that `counts` is missed while it is not present.
    pub(super) fn new(instruments: &Arc<Instruments>, path: &str, counts: bool) -> Self {
        if counts {
            instruments.kept_wanted(1.0);
        }
        Self {
            instruments: Arc::clone(instruments),
            path: path.to_owned(),
            last: Last::Absent,
            counts,
            counted: false,
        }
    }

    /// Counts the node as present, or as absent.
    pub(super) fn count(&mut self, present: bool) {
        if self.counts && std::mem::replace(&mut self.counted, present) != present {
            self.instruments.kept_present(if present { 1.0 } else { -1.0 });
        }
    }

    /// Records `status`, and returns true if it differs from the last report.
    fn is_new(&mut self, status: Last) -> bool {
        let is_new = self.last != status;
        self.last = status;
        is_new
    }

    /// Reports that the node is present in the session of this generation. The changes of a `brief` node are
    /// logged at debug level.
    pub(super) fn present(&mut self, generation: u64, brief: bool) {
        let waited = matches!(self.last, Last::Waiting(_) | Last::Occupied(_));
        if !self.is_new(Last::Present(generation)) {
            return;
        }
        let (client, path) = (&**self.instruments.client(), &self.path);
        if waited {
            // Event: The node of another session that occupied this path was deleted, and this client created
            // its own node.
            tracing::info!(
                target: "docent::node",
                %client,
                %path,
                generation,
                "the node of the other session was deleted; node is present"
            );
        } else if brief {
            // Event: A node that this client keeps for one step of a recipe, such as a round of a double
            // barrier, is present.
            tracing::debug!(target: "docent::node", %client, %path, generation, "node is present");
        } else {
            // Event: A node that this client keeps, such as a service registration, is present.
            tracing::info!(target: "docent::node", %client, %path, generation, "node is present");
        }
    }

    /// Reports which data another client wants the node to show.
    pub(super) fn chosen(&self, shown: Shown) {
        let (client, path) = (&**self.instruments.client(), &self.path);
        match shown {
            Shown::FinalData => {
                // Event: Another client, such as an operator's console, has taken a node that this client
                // keeps out of service, for example an instance of a service. It stays so until another
                // client puts it back, or until the registration ends.
                // Action: If that was not intended, enable the instance, for example in the console.
                tracing::warn!(target: "docent::node", %client, %path, "another client took the node out of service");
            }
            Shown::Data => {
                // Event: Another client, such as an operator's console, has put a node that this client keeps
                // back into service.
                tracing::info!(target: "docent::node", %client, %path, "another client put the node back into service");
            }
        }
    }

    /// Reports that another client deleted the node, and that it is re-created.
    pub(super) fn deleted(&mut self) {
        if self.is_new(Last::Absent) {
            let (client, path) = (&**self.instruments.client(), &self.path);
            // Event: Another client or a person deleted a node that this client keeps. The client creates the
            // node again.
            // Action: Find out which program deletes the node; this client is its owner.
            tracing::warn!(target: "docent::node", %client, %path, "another client deleted the node; creating it again");
        }
    }

    /// Reports that the node of an older session of this client was taken over.
    pub(super) fn taken_over(&self, owner: i64) {
        let (client, path) = (&**self.instruments.client(), &self.path);
        // Event: A node from this client's previous session is replaced by one of the current session.
        tracing::info!(
            target: "docent::node",
            %client,
            %path,
            session_id = format_args!("{owner:#x}"),
            "taking over the node of this client's previous session"
        );
    }

    /// Reports that a node of another session occupies the path, and that the client waits for its deletion.
    pub(super) fn waiting(&mut self, owner: i64) {
        if self.last != Last::Occupied(owner) && self.is_new(Last::Waiting(owner)) {
            let (client, path) = (&**self.instruments.client(), &self.path);
            // Event: The path is occupied by a node of another session, such as that of an earlier run of
            // this process. The client waits until the servers delete that node, which usually takes one
            // session timeout.
            tracing::info!(
                target: "docent::node",
                %client,
                %path,
                session_id = format_args!("{owner:#x}"),
                "another session's node is at the path; waiting for its deletion"
            );
        }
    }

    /// Reports that the node of another session has existed for longer than that session may take to expire.
    pub(super) fn occupied(&mut self, owner: i64) {
        if self.is_new(Last::Occupied(owner)) {
            let (client, path) = (&**self.instruments.client(), &self.path);
            // Event: The path is still occupied by a node of another session, for longer than an expiring
            // session may take. That session is alive. The client keeps waiting.
            // Action: Find the process that owns the session, and check whether two processes are configured
            // with the same path.
            tracing::warn!(
                target: "docent::node",
                %client,
                %path,
                session_id = format_args!("{owner:#x}"),
                "another session's node is still at the path; still waiting"
            );
        }
    }

    /// Reports that the node waits for its base.
    pub(super) fn without_base(&mut self, error: &Error) {
        if self.is_new(Last::Refused(error.kind())) {
            let (client, path) = (&**self.instruments.client(), &self.path);
            // Event: A node that this client keeps below another node, such as a report below a configuration
            // value, waits until that node exists.
            tracing::debug!(target: "docent::node", %client, %path, %error, "waiting for a parent of the node");
        }
    }

    /// Reports that the servers refuse the node.
    pub(super) fn refused(&mut self, error: &Error) {
        let (client, path) = (&**self.instruments.client(), &self.path);
        if self.last == Last::Refused(error.kind()) {
            // Event: Another attempt to create or write a kept node failed for the same reason. The client
            // retries.
            tracing::debug!(target: "docent::node", %client, %path, %error, "still cannot create or write the node; retrying");
            return;
        }
        // Event: A kept node cannot be created or written. The client retries until it succeeds.
        // Action: Read the error; a permission or a quota may be missing.
        tracing::warn!(target: "docent::node", %client, %path, %error, "cannot create or write the node; retrying");
        self.last = Last::Refused(error.kind());
    }

    /// Reports that the node is deleted, as wanted.
    pub(super) fn removed(&mut self, brief: bool) {
        self.last = Last::Absent;
        let (client, path) = (&**self.instruments.client(), &self.path);
        if brief {
            // Event: The client removed a node that it kept for one step of a recipe.
            tracing::debug!(target: "docent::node", %client, %path, "node is removed");
        } else {
            // Event: The client removed a node that is no longer wanted.
            tracing::info!(target: "docent::node", %client, %path, "node is removed");
        }
    }
}

impl Drop for StatusLog {
    fn drop(&mut self) {
        self.count(false);
        if self.counts {
            self.instruments.kept_wanted(-1.0);
        }
    }
}
