use crate::exit::Failure;
use docent::inspect::Refusal;

/// Checks that the requested node itself may be read.
///
/// # Errors
/// `NoPermission` if the node is among the refused ones.
pub(crate) fn readable(path: &str, refused: &[Refusal]) -> Result<(), Failure> {
    match refused.iter().any(|refusal| refusal.path == path) {
        true => Err(Failure::no_permission(format!("cannot read {path}: permission denied"))),
        false => Ok(()),
    }
}
