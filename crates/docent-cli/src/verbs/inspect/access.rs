use crate::exit::Failure;
use docent::inspect::Refusal;

/// Checks that the very node that was asked about may be read.
///
/// # Errors
/// `NoPermission` when it is among those that were refused.
pub(crate) fn readable(path: &str, refused: &[Refusal]) -> Result<(), Failure> {
    match refused.iter().any(|refusal| refusal.path == path) {
        true => Err(Failure::no_permission(format!("{path} may not be read: permission denied"))),
        false => Ok(()),
    }
}
