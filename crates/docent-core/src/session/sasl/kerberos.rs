//! The mechanism GSSAPI ([RFC 4752](https://www.rfc-editor.org/rfc/rfc4752)) as ZooKeeper's Java client uses
//! it: Kerberos, mutual authentication, no security layer.

use super::{Gssapi, SaslError, SaslStep};
use bytes::Bytes;
use libgssapi::context::{ClientCtx, CtxFlags, SecurityContext};
use libgssapi::error::{Error, MajorFlags};
use libgssapi::name::Name;
use libgssapi::oid::{GSS_MECH_KRB5, GSS_NT_HOSTBASED_SERVICE, GSS_NT_KRB5_PRINCIPAL};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio::sync::{Semaphore, oneshot};

/// Bit of the server's offer that permits a link without a security layer.
const NO_LAYER: u8 = 1;

/// Bits of a code that name the error of a routine, without hints.
const ROUTINE: u32 = 0xff << 16;

/// MIT Kerberos' code for a ticket that has expired, as the minor status of another error.
const EXPIRED: u32 = (-1_765_328_352_i32).cast_unsigned();

/// Length of the server's offer: the layers, and the largest message in three bytes.
const OFFER: usize = 4;

/// Largest token in bytes, in both directions. Windows limits tickets to 64 KiB.
const LARGEST_TOKEN: usize = 128 * 1024;

/// The calls of the Kerberos library for one identity: one at a time for each server, because each may wait
/// for a KDC on its own thread. A call that hangs blocks no other server, whose ticket may be in the cache.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<Target, Arc<Semaphore>>>>);

impl Calls {
    fn of(&self, target: &Target) -> Arc<Semaphore> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Servers without a call are forgotten.
        calls.retain(|_, call| Arc::strong_count(call) > 1);
        Arc::clone(calls.entry(target.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

/// Requests a ticket for the server `host`. Dropping the future abandons the call, which ends on its own
/// thread: the library cannot be interrupted while it waits for a KDC.
pub(super) async fn begin(
    settings: &Gssapi,
    calls: &Calls,
    host: &str,
) -> Result<(Exchange, Bytes), KerberosError> {
    let target = Target::new(settings, host);
    let failed = |reason: &dyn fmt::Display| KerberosError::Ticket {
        target: target.to_string(),
        reason: reason.to_string(),
    };
    let permit = calls.of(&target).acquire_owned().await.map_err(|error| failed(&error))?;
    let (done, begun) = oneshot::channel();
    let requested = target.clone();
    // Not a thread of the runtime: a runtime that shuts down waits for its own.
    let call = move || {
        let begun = Exchange::begin(&requested);
        drop(permit);
        // The receiver is dropped if the deadline has passed.
        let _ = done.send(begun);
    };
    let spawned = thread::Builder::new().name("docent-kerberos".to_owned()).spawn(call);
    spawned.map_err(|error| failed(&error))?;
    begun.await.unwrap_or_else(|_| Err(failed(&"the Kerberos library panicked")))
}

/// Principal of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Target {
    Principal(String),
    Service { service: String, host: String },
}

impl Target {
    fn new(settings: &Gssapi, host: &str) -> Self {
        match &settings.server_principal {
            Some(principal) => Self::Principal(principal.clone()),
            None => Self::Service { service: settings.service.clone(), host: host.to_owned() },
        }
    }

    /// Returns the name of the mechanism. This may ask DNS. The library would otherwise do so in each step.
    fn name(&self) -> Result<Name, Error> {
        let name = match self {
            Self::Principal(name) => Name::new(name.as_bytes(), Some(&GSS_NT_KRB5_PRINCIPAL)),
            Self::Service { service, host } => {
                Name::new(format!("{service}@{host}").as_bytes(), Some(&GSS_NT_HOSTBASED_SERVICE))
            }
        };
        name?.canonicalize(Some(&GSS_MECH_KRB5))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal(name) => f.write_str(name),
            Self::Service { service, host } => write!(f, "{service}/{host}"),
        }
    }
}

/// Reason why an authentication with Kerberos failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KerberosError {
    #[error("no Kerberos ticket: {reason}; run kinit, or set KRB5CCNAME or KRB5_CLIENT_KTNAME")]
    Credentials { reason: String },
    #[error(
        "no Kerberos ticket for the server {target}: {reason}; check the server's principal and the KDC in krb5.conf"
    )]
    Ticket { target: String, reason: String },
    #[error(
        "the server refused the Kerberos ticket for {target}; check the keytab and the log of the server"
    )]
    Refused { target: String },
    #[error("the server does not prove that it is {target}: {reason}")]
    Unproven { target: String, reason: String },
    #[error("the server {target} requires a SASL security layer, which ZooKeeper clients do not have")]
    Layer { target: String },
    #[error("a token for the server {target} has {length} bytes, and must have at most {LARGEST_TOKEN}")]
    TooLarge { target: String, length: usize },
}

impl KerberosError {
    /// Returns the error of a call that was to begin an authentication with `target`.
    fn of_begin(error: &Error, target: &Target) -> Self {
        let reason = error.to_string();
        // The codes are numbers, not sets of bits.
        let own = [MajorFlags::GSS_S_NO_CRED, MajorFlags::GSS_S_CREDENTIALS_EXPIRED];
        let is_own = own.iter().any(|code| error.major.bits() & ROUTINE == code.bits());
        match is_own || error.minor == EXPIRED {
            true => Self::Credentials { reason },
            false => Self::Ticket { target: target.to_string(), reason },
        }
    }
}

/// One authentication on one link.
pub(in crate::session) struct Exchange {
    context: ClientCtx,
    target: String,
    next: Next,
}

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The server's first reply.
    Proof,
    /// Further tokens of the context.
    MoreProof,
    /// The layers that the server offers.
    Offer,
    Verdict,
}

impl Exchange {
    /// Creates a context with its first token. Blocks while the library waits for a KDC or for DNS.
    fn begin(target: &Target) -> Result<(Self, Bytes), KerberosError> {
        let mut exchange = Self::new(target).map_err(|error| KerberosError::of_begin(&error, target))?;
        let token = exchange.context.step(None, None);
        let token = token.map_err(|error| KerberosError::of_begin(&error, target))?;
        let token = token.map_or_else(Bytes::new, |token| Bytes::copy_from_slice(&token));
        exchange.limited(&token)?;
        Ok((exchange, token))
    }

    fn new(target: &Target) -> Result<Self, Error> {
        let flags = CtxFlags::GSS_C_MUTUAL_FLAG | CtxFlags::GSS_C_INTEG_FLAG;
        let context = ClientCtx::new(None, target.name()?, flags, Some(&GSS_MECH_KRB5));
        Ok(Self { context, target: target.to_string(), next: Next::Proof })
    }

    /// Processes a token of the server. This is computation only: after the first token, the library needs
    /// neither a KDC nor DNS.
    pub(super) fn step(&mut self, token: Option<&[u8]>) -> Result<SaslStep, SaslError> {
        self.limited(token.unwrap_or_default())?;
        match (self.next, token) {
            (Next::Proof, None) => Err(SaslError::NotOffered),
            (Next::Proof | Next::MoreProof, Some(token)) => self.prove(token),
            (Next::Offer, Some(offer)) => self.choose(offer),
            // ZooKeeper sends no token with its verdict.
            (Next::Verdict, None | Some([])) => Ok(SaslStep::Done),
            (Next::Verdict, Some(_)) => Err(self.unproven("its last token is not empty")),
            (Next::MoreProof | Next::Offer, None) => Err(self.refused()),
        }
    }

    fn prove(&mut self, token: &[u8]) -> Result<SaslStep, SaslError> {
        let answer = self.context.step(Some(token), None).map_err(|error| self.unproven(error))?;
        self.next = Next::MoreProof;
        if self.context.is_complete() {
            let flags = self.context.flags().map_err(|error| self.unproven(error))?;
            if !flags.contains(CtxFlags::GSS_C_MUTUAL_FLAG) {
                return Err(self.unproven("no mutual authentication"));
            }
            self.next = Next::Offer;
        }
        // An empty token asks for the offer.
        Ok(SaslStep::Send(answer.map_or_else(Bytes::new, |token| Bytes::copy_from_slice(&token))))
    }

    /// Chooses no security layer, and the identity of the ticket.
    fn choose(&mut self, offer: &[u8]) -> Result<SaslStep, SaslError> {
        let offer = self.context.unwrap(offer).map_err(|error| self.unproven(error))?;
        if !permits_no_layer(&offer) {
            return Err(KerberosError::Layer { target: self.target.clone() }.into());
        }
        let choice = self.context.wrap(false, &[NO_LAYER, 0, 0, 0]);
        let choice = choice.map_err(|error| self.unproven(error))?;
        self.next = Next::Verdict;
        Ok(SaslStep::Send(Bytes::copy_from_slice(&choice)))
    }

    pub(super) fn refused(&self) -> SaslError {
        KerberosError::Refused { target: self.target.clone() }.into()
    }

    fn unproven(&self, reason: impl fmt::Display) -> SaslError {
        KerberosError::Unproven { target: self.target.clone(), reason: reason.to_string() }.into()
    }

    fn limited(&self, token: &[u8]) -> Result<(), KerberosError> {
        match token.len() {
            0..=LARGEST_TOKEN => Ok(()),
            length => Err(KerberosError::TooLarge { target: self.target.clone(), length }),
        }
    }
}

fn permits_no_layer(offer: &[u8]) -> bool {
    offer.len() == OFFER && offer[0] & NO_LAYER != 0
}

// The context contains keys.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Exchange");
        out.field("target", &self.target).field("next", &self.next).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange whose first token was sent. Its principal needs no DNS.
    fn exchange(next: Next) -> Exchange {
        let settings = Gssapi::new().server_principal("zookeeper/zk1@EXAMPLE.ORG");
        let mut exchange = Exchange::new(&Target::new(&settings, "zk1")).unwrap();
        exchange.next = next;
        exchange
    }

    #[test]
    fn a_server_is_named_by_its_host_or_by_one_principal_for_all() {
        let of = |settings| Target::new(&settings, "zk1").to_string();
        assert_eq!(of(Gssapi::new()), "zookeeper/zk1");
        assert_eq!(of(Gssapi::new().service("zk")), "zk/zk1");
        assert_eq!(of(Gssapi::new().server_principal("zk/all@EXAMPLE.ORG")), "zk/all@EXAMPLE.ORG");
    }

    #[test]
    fn a_name_is_resolved_before_the_first_step() {
        let name = Target::new(&Gssapi::new(), "localhost").name().unwrap().to_string();
        assert!(name.starts_with("zookeeper/localhost"), "{name} is not the name of a principal");
    }

    #[test]
    fn an_error_blames_the_own_credentials_or_the_ticket_for_the_server() {
        let with_minor = |major, minor| {
            let error = Error { major, minor };
            KerberosError::of_begin(&error, &Target::new(&Gssapi::new(), "zk1"))
        };
        let of = |major| with_minor(major, 0);
        for own in [MajorFlags::GSS_S_NO_CRED, MajorFlags::GSS_S_CREDENTIALS_EXPIRED] {
            assert!(matches!(of(own), KerberosError::Credentials { .. }));
            assert!(of(own).to_string().contains("run kinit"));
        }
        // As sets of bits, these contain those above.
        for other in
            [MajorFlags::GSS_S_FAILURE, MajorFlags::GSS_S_BAD_MECH_ATTR, MajorFlags::GSS_S_UNAVAILABLE]
        {
            assert!(matches!(of(other), KerberosError::Ticket { .. }), "{:?}", of(other));
        }
        let expired = with_minor(MajorFlags::GSS_S_FAILURE, EXPIRED);
        assert!(matches!(expired, KerberosError::Credentials { .. }), "{expired}");
        assert!(of(MajorFlags::GSS_S_FAILURE).to_string().contains("zookeeper/zk1"));
    }

    #[test]
    fn a_reply_without_a_token_offers_nothing_refuses_or_accepts() {
        assert_eq!(exchange(Next::Proof).step(None), Err(SaslError::NotOffered));
        for next in [Next::MoreProof, Next::Offer] {
            let error = exchange(next).step(None).unwrap_err();
            assert!(error.is_refusal(), "{error}");
        }
        assert_eq!(exchange(Next::Verdict).step(None), Ok(SaslStep::Done));
        assert_eq!(exchange(Next::Verdict).step(Some(b"")), Ok(SaslStep::Done));
    }

    #[test]
    fn a_token_that_no_key_protects_proves_nothing() {
        for next in [Next::Offer, Next::Verdict] {
            let error = exchange(next).step(Some(b"\x07\0\0\0")).unwrap_err();
            assert!(matches!(error, SaslError::Kerberos(KerberosError::Unproven { .. })), "{error}");
            assert!(!error.is_refusal(), "another server may be the right one");
        }
    }

    #[test]
    fn a_token_has_a_largest_size() {
        for next in [Next::Proof, Next::Offer, Next::Verdict] {
            let error = exchange(next).step(Some(&vec![0; LARGEST_TOKEN + 1])).unwrap_err();
            assert!(error.to_string().contains("has 131073 bytes, and must have at most 131072"), "{error}");
        }
    }

    #[test]
    fn an_offer_permits_a_link_without_a_layer_or_is_refused() {
        for (offer, expected) in [
            (&[NO_LAYER, 0, 0, 0][..], true),
            (&[7, 0, 0x40, 0], true),
            (&[2, 0, 0, 0], false),
            (&[4, 0, 0, 0], false),
            (&[NO_LAYER, 0, 0], false),
            (&[NO_LAYER, 0, 0, 0, 0], false),
            (&[], false),
        ] {
            assert_eq!(permits_no_layer(offer), expected, "{offer:?}");
        }
    }

    #[test]
    fn neither_a_token_nor_a_context_is_printed() {
        let printed = format!("{:?} {:?}", exchange(Next::Offer), SaslStep::Send(b"token"[..].into()));
        assert_eq!(printed, "Exchange { target: \"zookeeper/zk1@EXAMPLE.ORG\", next: Offer, .. } Send");
    }

    #[tokio::test]
    async fn an_abandoned_call_lets_the_next_one_begin_after_it_has_ended() {
        let calls = Calls::default();
        let settings = Gssapi::new().server_principal("zookeeper/zk1@EXAMPLE.ORG");
        let call = calls.of(&Target::new(&settings, "zk1"));
        let held = Arc::clone(&call).try_acquire_owned().unwrap();
        let mut waiting = Box::pin(begin(&settings, &calls, "zk1"));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(held);
        // It has a thread now, which nothing waits for.
        assert!(futures_util::poll!(&mut waiting).is_pending() || call.available_permits() == 1);
        drop(waiting);
        call.acquire().await.unwrap().forget();
        assert_eq!(call.available_permits(), 0);
    }

    #[test]
    fn a_call_that_hangs_blocks_no_other_server_and_is_forgotten_when_it_ends() {
        let calls = Calls::default();
        let target = |host| Target::new(&Gssapi::new(), host);
        let hanging = calls.of(&target("zk1")).try_acquire_owned().unwrap();
        assert_eq!(calls.of(&target("zk1")).available_permits(), 0);
        assert_eq!(calls.of(&target("zk2")).available_permits(), 1);
        drop(hanging);
        drop(calls.of(&target("zk3")));
        assert_eq!(calls.0.lock().unwrap().len(), 1);
    }
}
