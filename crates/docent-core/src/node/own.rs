//! Names of the folders in which clients keep their own nodes, beside those of recipes (decision 26), and of
//! the proofs that they create below claimed nodes (decision 28).

use uuid::Uuid;

/// Name of the folder shared by all clients that may create nodes beside it.
pub(crate) const OWN: &str = "_docent";

/// The rule that reserves these folders, as errors state it after a path.
pub(crate) const NOT_OWN: &str =
    "must not be a folder \"_docent\" or below one: these nodes belong to Docent's clients";

/// Suffix after the id in the name of a proof. The name does not end with digits, so that it is not mistaken
/// for that of a sequential node.
pub(crate) const PROOF: &str = "-claim";

/// Returns true for the name of a folder in which clients keep their own nodes, such as the markers of exact
/// writes: `_docent`, and `_docent-…` for one session. Recipes skip these names.
pub fn is_own_name(name: &str) -> bool {
    name.strip_prefix(OWN).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns true for the path of such a folder, and of all nodes below it.
pub fn is_own_path(path: &str) -> bool {
    path.split('/').any(is_own_name)
}

/// Returns true for the name of the proof of a claim.
pub(crate) fn is_proof(name: &str) -> bool {
    name.strip_suffix(PROOF).is_some_and(|id| Uuid::try_parse(id).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_clients_are_distinguished_from_nodes_of_recipes() {
        for own in ["/_docent", "/_docent/a", "/a/_docent-1f/b", "/_docent-1f"] {
            assert!(is_own_path(own), "{own}");
        }
        for other in ["/", "/a", "/_docents", "/_docent2/a", "/a_docent", "/docent"] {
            assert!(!is_own_path(other), "{other}");
        }
    }
}
