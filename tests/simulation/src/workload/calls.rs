use super::ClientCtx;
use super::record::Call;
use docent::{CreateMode, ErrorKind};
use fastrand::Rng;
use std::ops::ControlFlow;

/// Folder of the nodes that clients write without a recipe.
pub(crate) const PLAIN: &str = "/plain";

/// Calls a method of the client itself, with a deadline. Breaks if the client is closed.
pub(super) async fn plain_call(ctx: &ClientCtx, rng: &mut Rng) -> ControlFlow<()> {
    let within = ctx.setting.span(rng);
    let client = ctx.client.with_operation_timeout(within);
    let path = format!("{PLAIN}/{}", rng.u8(..4));
    let operation = ["create", "get", "set", "exists", "children", "ensure_absent", "sync"][rng.usize(..7)];
    let call = Call::begin(ctx, operation, within);
    let result = match operation {
        "create" => client.create(&path, "", CreateMode::Persistent).await.map(drop),
        "get" => client.get(&path).await.map(drop),
        "set" => client.set(&path, "value", None).await.map(drop),
        "exists" => client.exists(&path).await.map(drop),
        "children" => client.children(&path).await.map(drop),
        "ensure_absent" => client.ensure_absent(&path).await,
        _ => client.sync(&path).await,
    };
    let kind = result.err().map(|error| error.kind());
    call.returned(kind.map_or_else(|| "ok".to_owned(), |kind| format!("{kind:?}")));
    match kind {
        Some(ErrorKind::Closed) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}
