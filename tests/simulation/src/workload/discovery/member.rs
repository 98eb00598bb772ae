use super::offer::Offer;
use super::workload::{GROUP, stay};
use crate::workload::ClientCtx;
use crate::workload::abandon::abandon_at;
use docent::{Membership, Released};
use fastrand::Rng;
use std::ops::ControlFlow;

/// One member from its joining to its leaving. Breaks if the client is closed.
pub(super) async fn join(ctx: &ClientCtx, id: &str, rng: &mut Rng) -> ControlFlow<()> {
    let Ok(group) = Membership::new(&ctx.client, GROUP) else { return ControlFlow::Break(()) };
    let offer = Offer::new(ctx, format!("{GROUP}/{id}"));
    let number = offer.request();
    let joined = match rng.u8(..6) {
        0 => abandon_at(rng.u32(1..12), group.join(id, number.to_string())).await,
        _ => Some(group.join(id, number.to_string()).await.inspect(|_| offer.written(number))),
    };
    let member = match joined {
        Some(Ok(member)) => member,
        Some(Err(error)) => return ctx.failed(&error),
        None => return ControlFlow::Continue(()),
    };
    for _ in 0..rng.u8(..4) {
        if rng.bool() {
            member.set_data(offer.request().to_string());
        }
        if stay(ctx, rng).await.is_break() {
            break;
        }
    }
    offer.leaving();
    if rng.u8(..4) > 0 {
        match member.leave().await {
            Ok(Released::Done) => offer.left(),
            // The member leaves in the background.
            Ok(Released::Pending) => {}
            Err(error) => return ctx.failed(&error),
        }
    }
    ControlFlow::Continue(())
}
