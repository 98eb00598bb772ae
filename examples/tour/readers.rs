use crate::stage::Stage;
use anyhow::ensure;
use docent::RwLock;
use docent::locks::AcquireError;

/// A writer keeps all others out, until it downgrades and reads together with them.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Read/write lock: a writer downgrades, and other clients read at the same time");
    let (editor, other) = (stage.client("editor").await?, stage.client("reader").await?);
    let path = format!("{}/catalogue", stage.root());
    let (lock, other_lock) = (RwLock::new(&editor, &path)?, RwLock::new(&other, &path)?);
    let writing = lock.write().await?;
    stage.print("editor", format_args!("acquired the write lock, fence {}", writing.fence()));
    ensure!(
        matches!(other_lock.try_read().await, Err(AcquireError::Busy(_))),
        "a reader acquired the lock while the writer held it"
    );
    stage.print("reader", "must wait");

    let reading = writing.downgrade().await?;
    stage.print("editor", "downgraded to a reader without releasing the lock");
    let also_reading = other_lock.read().await?;
    ensure!(reading.is_held() && also_reading.is_held(), "two readers do not read at the same time");
    stage.print("reader", "reads at the same time");
    also_reading.release().await?;
    reading.release().await?;
    other.close().await;
    editor.close().await;
    Ok(())
}
