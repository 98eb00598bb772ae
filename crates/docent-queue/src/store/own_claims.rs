use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names of the items that this process has claimed. Other claims show that other processes take items as
/// well.
#[derive(Debug, Default, Clone)]
pub(crate) struct OwnClaims(Arc<Mutex<HashSet<String>>>);

impl OwnClaims {
    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a claim.
    pub(crate) fn note(&self, name: &str) -> OwnClaim {
        self.names().insert(name.to_owned());
        OwnClaim { claims: self.clone(), name: name.to_owned() }
    }

    /// Returns whether the claim belongs to this process.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().contains(name)
    }
}

/// Record that this process has claimed an item.
///
/// # On drop
/// The record is removed: if the claim still exists, it counts as another process's.
#[derive(Debug)]
pub(crate) struct OwnClaim {
    claims: OwnClaims,
    name: String,
}

impl Drop for OwnClaim {
    fn drop(&mut self) {
        self.claims.names().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_known_while_its_note_exists() {
        let claims = OwnClaims::default();
        let (one, other) = (claims.note("one"), claims.note("other"));
        assert!(claims.has("one") && claims.has("other") && !claims.has("third"));
        drop(one);
        assert!(!claims.has("one") && claims.has("other"));
        drop(other);
    }
}
