use crate::controls::Controls;
use crate::setting::Setting;
use docent::Client;
use docent_checker::ClientRecorder;
use tokio_util::sync::CancellationToken;

/// Context of one client: its handles, the recorder of its events, and the setting of the run.
#[derive(Debug, Clone)]
pub(crate) struct ClientCtx {
    pub(crate) client: Client,
    pub(crate) recorder: ClientRecorder,
    pub(crate) setting: Setting,
    pub(crate) controls: Controls,
    /// Cancelled when nothing new may be begun.
    pub(crate) stop: CancellationToken,
}
