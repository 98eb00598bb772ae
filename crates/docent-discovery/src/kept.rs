use docent_core::Error;
use docent_core::recipe::{KeptNode, KeptStatus};

/// Waits until the servers have what is wanted of a kept node. That of a predecessor is waited for until its session must have
/// ended; then the core says so.
pub(crate) async fn present(node: &KeptNode) -> Result<(), Error> {
    loop {
        match node.present().await {
            Err(_) if matches!(node.status(), KeptStatus::Occupied { .. }) => {}
            result => return result,
        }
    }
}
