use crate::controls::Controls;
use crate::wire::Wire;
use docent::transport::{Dialled, Io, ServerAddress, Transport};
use docent_checker::ClientRecorder;
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use turmoil::net::TcpStream;

/// Connects to servers through the simulated network, with links whose frames are recorded and disturbed.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedTransport {
    controls: Controls,
    recorder: Option<ClientRecorder>,
}

impl SimulatedTransport {
    /// Records the links' traffic with `recorder`, if there is one.
    pub(crate) fn new(controls: Controls, recorder: Option<ClientRecorder>) -> Self {
        Self { controls, recorder }
    }
}

impl Transport for SimulatedTransport {
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        Box::pin(async move { Ok(vec![(turmoil::lookup(server.host.as_str()), server.port).into()]) })
    }

    fn dial<'a>(&'a self, _: &'a ServerAddress, address: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        Box::pin(async move {
            poll_fn(|cx| self.controls.poll_running(cx)).await;
            let stream = match TcpStream::connect(address).await {
                Ok(stream) => stream,
                // The simulated network refuses connections that a real one would leave unanswered.
                Err(error) if is_refusal(&error) && self.controls.is_cut(address.ip()) => pending().await,
                Err(error) => return Err(error),
            };
            poll_fn(|cx| self.controls.poll_running(cx)).await;
            let wire = Wire::new(stream, self.controls.clone(), self.recorder.clone());
            Ok(Box::new(wire) as Box<dyn Io>)
        })
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}
