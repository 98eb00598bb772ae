use crate::stage::Stage;
use anyhow::ensure;
use docent::RwLock;
use docent::locks::AcquireError;

/// A writer keeps all others out, until it steps down and reads together with them.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Read/write lock: a writer steps down, and others read at the same time");
    let (editor, other) = (stage.client("editor").await?, stage.client("reader").await?);
    let path = format!("{}/catalogue", stage.root());
    let (lock, others) = (RwLock::new(&editor, &path)?, RwLock::new(&other, &path)?);
    let writing = lock.write().await?;
    stage.say("editor", format_args!("writes, fence {}", writing.fence()));
    ensure!(matches!(others.try_read().await, Err(AcquireError::Busy(_))), "a reader got past the writer");
    stage.say("reader", "is kept out");

    let reading = writing.downgrade().await?;
    stage.say("editor", "stepped down to a reader without letting go");
    let also_reading = others.read().await?;
    ensure!(reading.is_held() && also_reading.is_held(), "two readers do not read at the same time");
    stage.say("reader", "reads at the same time");
    also_reading.release().await?;
    reading.release().await?;
    other.close().await;
    editor.close().await;
    Ok(())
}
