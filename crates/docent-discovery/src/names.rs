use crate::layout::Placement;
use docent_core::recipe::is_own_name;
use docent_core::{Children, Client, Error, WatchStream};
use futures_core::Stream;
use futures_util::StreamExt;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Stream of the names of a registry's services. Created by
/// [`Registry::watch_names`](crate::Registry::watch_names).
///
/// An error that is not about the connection, such as `NoAuth`, is reported once; the stream keeps retrying.
#[must_use = "a stream does nothing unless it is polled"]
pub struct ServiceNames {
    children: WatchStream<Children>,
    placement: Placement,
    reported: Option<Vec<String>>,
}

impl ServiceNames {
    pub(crate) fn new(client: &Client, placement: &Placement) -> Result<Self, Error> {
        Ok(Self {
            children: client.watch_children(&placement.base)?,
            placement: placement.clone(),
            reported: None,
        })
    }
}

impl Stream for ServiceNames {
    type Item = Result<Vec<String>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let names = match self.children.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(children))) => {
                    children.map_or_else(Vec::new, |children| sorted(&self.placement, &children))
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            if self.reported.as_ref() != Some(&names) {
                self.reported = Some(names.clone());
                return Poll::Ready(Some(Ok(names)));
            }
        }
    }
}

/// Returns the services that the children of the base represent.
pub(crate) fn sorted(placement: &Placement, children: &Children) -> Vec<String> {
    let is_service = |name: &&String| !is_own_name(name) && placement.is_service(name);
    let services = children.names.iter().filter(is_service);
    let mut names: Vec<_> = services.map(|name| placement.service(name)).collect();
    names.sort();
    names
}

impl fmt::Debug for ServiceNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceNames").field("placement", &self.placement).finish_non_exhaustive()
    }
}
