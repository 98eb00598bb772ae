use docent_core::Error;
use docent_core::recipe::{KeptNode, KeptStatus};

/// Waits until a kept node is at the servers as wanted. A predecessor's node is waited for until its session
/// must have ended; then the core says so.
pub(crate) async fn present(node: &KeptNode) -> Result<(), Error> {
    loop {
        match node.present().await {
            Err(_) if matches!(node.status(), KeptStatus::Occupied { .. }) => {}
            result => return result,
        }
    }
}
