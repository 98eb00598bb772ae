use docent_core::Error;
use docent_core::recipe::{KeptNode, KeptStatus};

/// Waits until a kept node exists with the wanted data. If a predecessor's node exists, waits until its
/// session must have ended; after that the core reports an error.
pub(crate) async fn present(node: &KeptNode) -> Result<(), Error> {
    loop {
        match node.present().await {
            Err(_) if matches!(node.status(), KeptStatus::Occupied { .. }) => {}
            result => return result,
        }
    }
}
