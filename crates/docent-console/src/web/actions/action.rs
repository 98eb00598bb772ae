use super::target::Role;
use serde::{Deserialize, Serialize};

/// What a person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    /// Ask a holder of a lock or permit to leave.
    Leave,
    /// Delete the node of a contender, or of the claim of an item.
    Delete,
    /// Take an instance out of service, or put it back.
    Disable,
    Enable,
    /// Publish an earlier value of a configuration again.
    Rollback,
    /// Put a dead letter back into its queue.
    Requeue,
    /// Delete a dead letter.
    Discard,
}

impl Action {
    /// Returns the name, as in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Delete => "delete",
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::Rollback => "rollback",
            Self::Requeue => "requeue",
            Self::Discard => "discard",
        }
    }

    /// Returns the question that is asked before the action.
    pub(super) fn question(self) -> &'static str {
        match self {
            Self::Leave => "Ask this holder to leave?",
            Self::Delete => "Delete this node?",
            Self::Disable => "Drain this instance?",
            Self::Enable => "Put this instance back into service?",
            Self::Rollback => "Publish this earlier value again?",
            Self::Requeue => "Put this item back into the queue?",
            Self::Discard => "Delete this dead letter?",
        }
    }

    /// Returns what the action does, for the person who is asked.
    pub(super) fn effect(self, role: &Role) -> &'static str {
        match self {
            _ if *role == Role::Rule => "Callers no longer follow this rule.",
            Self::Disable if *role != Role::Shown => {
                "Callers follow this rule: they no longer choose the instance at this address, and requests in progress end as usual, so it drains. The rule stays until you enable the instance or delete the rule, whoever registers at this address."
            }
            Self::Leave => {
                "The request is written into the node, where it replaces the identity of its owner. The owner may ignore it."
            }
            Self::Delete => {
                "Its owner loses the lock, the leadership or the item at once, and another client gets it. A waiter that is still alive joins the line again at its end."
            }
            Self::Disable => {
                "Callers no longer choose it, and requests in progress end as usual, so it drains. It stays registered. A client of Docent keeps it disabled until you enable it or it registers anew; one of Curator enables it when it writes its node again, for example after a lost session."
            }
            Self::Enable => "Callers may choose it again, unless the service itself has disabled it.",
            Self::Rollback => "It becomes a new version, which all readers follow.",
            Self::Requeue => "It goes to the end of the queue and counts as never handed out.",
            Self::Discard => "Its payload cannot be restored.",
        }
    }

    /// Returns the text of the button.
    pub(super) fn button(self) -> &'static str {
        match self {
            Self::Leave => "Ask to leave",
            Self::Delete => "Delete",
            Self::Disable => "Disable",
            Self::Enable => "Enable",
            Self::Rollback => "Publish again",
            Self::Requeue => "Put back",
            Self::Discard => "Delete",
        }
    }
}
