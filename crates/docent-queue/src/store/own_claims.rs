use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names of the items that this process has claimed: claims of others show that others take items, too.
#[derive(Debug, Default, Clone)]
pub(crate) struct OwnClaims(Arc<Mutex<HashSet<String>>>);

impl OwnClaims {
    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a claim.
    pub(crate) fn note(&self, name: &str) -> OwnClaim {
        self.names().insert(name.to_owned());
        OwnClaim { claims: self.clone(), name: name.to_owned() }
    }

    /// True for a claim of this process.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().contains(name)
    }
}

/// Note that this process has an item.
///
/// # On drop
/// The note is gone: a claim that is still there counts as another's.
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
    fn a_claim_is_known_while_its_note_is_there() {
        let claims = OwnClaims::default();
        let (one, other) = (claims.note("one"), claims.note("other"));
        assert!(claims.has("one") && claims.has("other") && !claims.has("third"));
        drop(one);
        assert!(!claims.has("one") && claims.has("other"));
        drop(other);
    }
}
