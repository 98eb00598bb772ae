use super::offer::Offer;
use super::workload::{FOLDER, SERVICE, SERVICES, stay};
use crate::workload::ClientCtx;
use crate::workload::abandon::abandon_at;
use docent::discovery::Registration;
use docent::{Instance, Registry, Released};
use fastrand::Rng;
use std::ops::ControlFlow;
use tokio::time::{sleep, timeout};

/// One instance from its registration to its end. Breaks if the client is closed.
pub(super) async fn serve(ctx: &ClientCtx, id: &str, rng: &mut Rng) -> ControlFlow<()> {
    let Ok(registry) = Registry::new(&ctx.client, SERVICES) else { return ControlFlow::Break(()) };
    let offer = Offer::new(ctx, format!("{FOLDER}/{id}"));
    let number = offer.request();
    let instance = instance(id, number);
    let registered = match rng.u8(..8) {
        0 => abandon_at(rng.u32(1..12), registry.register(instance)).await,
        1 => timeout(ctx.setting.span(rng), registry.register(instance)).await.ok(),
        2 => Some(registry.announce(instance)),
        _ => Some(registry.register(instance).await.inspect(|_| offer.written(number))),
    };
    let registration = match registered {
        Some(Ok(registration)) => registration,
        Some(Err(error)) => return ctx.failed(&error),
        None => return ControlFlow::Continue(()),
    };
    for _ in 0..rng.u8(..4) {
        change(ctx, &registration, &offer, id, rng).await?;
        if stay(ctx, rng).await.is_break() {
            break;
        }
    }
    leave(ctx, registration, &offer, rng).await
}

fn instance(id: &str, number: u64) -> Instance<u64> {
    Instance::new(SERVICE, "host", 80).id(id).payload(number)
}

/// Changes the instance's number, or whether the instance is enabled.
async fn change(
    ctx: &ClientCtx,
    registration: &Registration,
    offer: &Offer<'_>,
    id: &str,
    rng: &mut Rng,
) -> ControlFlow<()> {
    let changed = if rng.u8(..3) == 0 {
        registration.set_enabled(rng.bool()).await
    } else {
        let number = offer.request();
        let update = registration.update(instance(id, number).enabled(rng.u8(..4) > 0));
        // An update continues if its future is dropped.
        let updated = if rng.u8(..4) == 0 {
            timeout(ctx.setting.span(rng), update).await.ok()
        } else {
            Some(update.await)
        };
        if let Some(Ok(())) = updated {
            offer.written(number);
        }
        updated.unwrap_or(Ok(()))
    };
    changed.err().map_or(ControlFlow::Continue(()), |error| ctx.failed(&error))
}

/// Leaves in one of the possible ways.
async fn leave(
    ctx: &ClientCtx,
    registration: Registration,
    offer: &Offer<'_>,
    rng: &mut Rng,
) -> ControlFlow<()> {
    offer.leaving();
    let left = match rng.u8(..6) {
        0 => return ControlFlow::Continue(()),
        1 => abandon_at(rng.u32(1..12), registration.deregister()).await,
        2 => Some(registration.drain(ctx.setting.span(rng)).await),
        _ => Some(registration.deregister().await),
    };
    match left {
        Some(Ok(Released::Done)) => offer.left(),
        Some(Err(error)) => return ctx.failed(&error),
        // Deregistration continues in the background. The next instance with the same id waits for it.
        Some(Ok(Released::Pending)) | None => sleep(ctx.setting.span(rng)).await,
    }
    ControlFlow::Continue(())
}
