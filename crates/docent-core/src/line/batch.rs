use super::draw::{Drawn, draw_together, max_together};
use super::{Line, Ticket, WaitError};
use crate::error::Error;
use crate::hold::Hold;
use crate::session::Lane;
use bytes::Bytes;
use docent_proto::{MultiOp, Request};
use std::collections::HashSet;
use std::fmt;

/// Several consecutive tickets of one line, for recipes that count the places themselves.
///
/// # On drop
/// The nodes of all tickets are deleted, like that of a single [`Ticket`].
///
/// # Examples
/// A client that may hold 3 of 10 places, if they are free:
/// ```no_run
/// # use docent_core::recipe::{Hold, Line, WaitError};
/// # async fn example(line: &Line) -> Result<Option<Vec<Hold>>, WaitError> {
/// let batch = line.take_tickets(3, None).await?;
/// // The contenders ahead of the last ticket include the two others of the batch.
/// let is_free = batch.ahead().is_some_and(|ahead| ahead < 10);
/// if is_free { batch.hold().await.map(Some) } else { Ok(None) }
/// # }
/// ```
#[must_use = "dropping a batch gives up the places in the line"]
pub struct TicketBatch {
    line: Line,
    /// In line order.
    tickets: Vec<Ticket>,
    ahead: Option<usize>,
    /// Maximum number of tickets, or of checks, in one request.
    together: usize,
    at_once: bool,
}

impl TicketBatch {
    pub(super) async fn draw(line: &Line, count: u32, data: Option<Bytes>) -> Result<Self, Error> {
        if count == 0 {
            return Err(Error::invalid_input(line.operation(), "tickets 0 must be at least 1"));
        }
        let together = max_together(line, data.as_ref());
        let mut batch =
            Self { line: line.clone(), tickets: Vec::new(), ahead: None, together, at_once: false };
        let mut missing = count as usize;
        while missing > 0 {
            // Send the requests one after another: this bounds the data in flight, and the line is listed
            // only once.
            let some = missing.min(together);
            missing -= some;
            let Drawn { tickets, names, at_once } =
                draw_together(line, data.clone(), some, missing == 0).await?;
            batch.at_once = at_once && (batch.tickets.is_empty() || batch.at_once);
            batch.tickets.extend(tickets);
            batch.ahead = names.map_or(Ok(None), |names| batch.ahead_in(&names))?;
        }
        Ok(batch)
    }

    /// Number of contenders that were ahead of the last ticket when it was taken, including the other tickets
    /// of the batch; `None` if unknown.
    pub fn ahead(&self) -> Option<usize> {
        self.ahead
    }

    /// Returns true if no request had to be repeated, for example because of a missing folder. Then the first
    /// request was submitted when the future of [`take_tickets`](Line::take_tickets) was first polled.
    pub fn at_once(&self) -> bool {
        self.at_once
    }

    /// Returns the number of contenders among `names` that are ahead of the last ticket, including the other
    /// tickets of the batch; `None` if a ticket of the batch is not among `names`. After the tickets are
    /// taken, the number can only decrease.
    ///
    /// # Errors
    /// `MixedKinds` if a contender of another kind is ahead of the last ticket.
    pub fn ahead_in(&self, names: &[String]) -> Result<Option<usize>, Error> {
        let Some(last) = self.tickets.last() else { return Ok(None) };
        self.line.refuse_other_kinds(Some(last.name()), names)?;
        let own: HashSet<&str> = self.tickets.iter().map(Ticket::name).collect();
        if names.iter().filter(|name| own.contains(name.as_str())).count() < own.len() {
            return Ok(None);
        }
        Ok(self.line.ahead_of(last, names))
    }

    /// Turns all tickets into holds, regardless of other contenders in the line, after making certain that
    /// all nodes existed at the same moment.
    ///
    /// # Errors
    /// Same as [`Ticket::wait`].
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue.
    pub async fn hold(self) -> Result<Vec<Hold>, WaitError> {
        // One transaction created the nodes a moment ago, and the listing after it contained all of them.
        let is_fresh = |ticket: &Ticket| ticket.acked_recently() && ticket.listed_recently();
        let is_one = self.tickets.len() <= self.together && self.ahead.is_some();
        if !is_one || !self.tickets.iter().all(is_fresh) {
            self.check_own_nodes().await?;
        }
        let mut holds = Vec::with_capacity(self.tickets.len());
        for mut ticket in self.tickets {
            ticket.refuse_hold()?;
            let hold = loop {
                match ticket.hold(None) {
                    Ok(hold) => break hold,
                    // The lease ran out since the last acknowledged write; a check renews the lease. Holds
                    // that began earlier are lost.
                    Err(same) => ticket = same,
                }
                ticket.refuse_hold()?;
                ticket.check_own_node().await?;
            };
            holds.push(hold);
        }
        Ok(holds)
    }

    /// Checks through a quorum that all nodes exist. All nodes were created before the first check, so if
    /// each check finds its node, all of them existed when the first check was applied.
    async fn check_own_nodes(&self) -> Result<(), WaitError> {
        let Some(first) = self.tickets.first() else { return Ok(()) };
        let generation = &first.generation;
        if self.tickets.iter().any(|ticket| ticket.generation.number != generation.number) {
            return Err(WaitError::Gone);
        }
        for some in self.tickets.chunks(self.together) {
            let checks = || {
                let check = |ticket: &Ticket| MultiOp::Check { path: ticket.node.path.clone(), version: -1 };
                Request::Multi(some.iter().map(check).collect())
            };
            while !first.proven(generation.session.submit(checks(), Lane::Call).await).await? {}
        }
        first.lease_begun().await;
        Ok(())
    }
}

impl Line {
    /// Takes `count` consecutive tickets with as few requests as possible, and lists the line once.
    ///
    /// # Errors
    /// Same as [`take_ticket`](Self::take_ticket); `TooManyEphemerals` if the session would own too many
    /// nodes; `InvalidInput` if `count` is 0. After an error, no ticket remains.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses your place in the queue: the nodes of the tickets
    /// are deleted.
    pub async fn take_tickets(&self, count: u32, data: Option<Bytes>) -> Result<TicketBatch, Error> {
        TicketBatch::draw(self, count, data).await
    }
}

impl fmt::Debug for TicketBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketBatch")
            .field("path", &self.line.path())
            .field("tickets", &self.tickets.len())
            .field("ahead", &self.ahead)
            .finish_non_exhaustive()
    }
}
