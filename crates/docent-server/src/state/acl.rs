//! Access control lists: their form, and the operations they allow.

use docent_proto::{Acl, ClientInfo, Code, Permissions};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

/// An identity of a link, as a scheme and an id of that scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) scheme: String,
    pub(crate) id: String,
}

impl Identity {
    /// The identity as it may be shown, without secrets.
    pub(crate) fn client(&self) -> ClientInfo {
        let user = match self.scheme.as_str() {
            "digest" => self.id.split(':').next().unwrap_or_default(),
            _ => &self.id,
        };
        ClientInfo { scheme: self.scheme.clone(), user: user.to_owned() }
    }
}

static OPEN: LazyLock<Arc<[Acl]>> = LazyLock::new(|| Acl::open().into());

/// The list that lets everybody do everything. There is one of it for all nodes.
pub(crate) fn open() -> Arc<[Acl]> {
    Arc::clone(&OPEN)
}

/// Bytes that a list takes up. The open one and the one of `/zookeeper/config` are shared.
pub(crate) fn weight(list: &[Acl]) -> usize {
    let is_shared = *list == **OPEN || *list == **READ_ONLY;
    if is_shared { 0 } else { list.iter().map(|entry| named(&entry.scheme, &entry.id)).sum() }
}

/// Bytes that an entry of a list takes up, or an identity.
pub(crate) fn named(scheme: &str, id: &str) -> usize {
    const PLACE: usize = 128;
    PLACE + scheme.len() + id.len()
}

static READ_ONLY: LazyLock<Arc<[Acl]>> = LazyLock::new(|| {
    let anyone = Acl { permissions: Permissions::READ, scheme: "world".into(), id: "anyone".into() };
    Arc::new([anyone])
});

pub(crate) fn read_only() -> Arc<[Acl]> {
    Arc::clone(&READ_ONLY)
}

/// The list that is stored for one that a client sent: without duplicates, `auth` replaced by the client's
/// identities.
///
/// # Errors
/// [`Code::INVALID_ACL`] when it is empty, names an unknown scheme, or `auth` although the client is nobody.
pub(crate) fn fix(acl: &[Acl], identities: &[Identity]) -> Result<Arc<[Acl]>, Code> {
    let mut fixed: Vec<Acl> = Vec::new();
    for (index, entry) in acl.iter().enumerate() {
        if acl[..index].contains(entry) {
            continue;
        }
        match &*entry.scheme {
            "world" if entry.id == "anyone" => fixed.push(entry.clone()),
            "auth" => fixed.extend(authenticated(entry, identities)?),
            "digest" if entry.id.split(':').count() == 2 => fixed.push(entry.clone()),
            "ip" if is_ip(&entry.id) => fixed.push(entry.clone()),
            _ => return Err(Code::INVALID_ACL),
        }
    }
    match &*fixed {
        [] => Err(Code::INVALID_ACL),
        list if *list == **OPEN => Ok(open()),
        list if *list == **READ_ONLY => Ok(read_only()),
        _ => Ok(fixed.into()),
    }
}

fn authenticated(entry: &Acl, identities: &[Identity]) -> Result<Vec<Acl>, Code> {
    let entries: Vec<Acl> = identities
        .iter()
        .filter(|identity| identity.scheme != "ip")
        .map(|identity| Acl {
            permissions: entry.permissions,
            scheme: identity.scheme.clone().into(),
            id: identity.id.clone().into(),
        })
        .collect();
    if entries.is_empty() { Err(Code::INVALID_ACL) } else { Ok(entries) }
}

/// Checks that `acl` lets a client with all of `identities` do one of `wanted`.
///
/// # Errors
/// [`Code::NO_AUTH`] when it does not.
pub(crate) fn check(acl: &[Acl], wanted: Permissions, identities: &[Identity]) -> Result<(), Code> {
    let grants = |entry: &Acl| match &*entry.scheme {
        "world" => true,
        "ip" => {
            identities.iter().any(|identity| identity.scheme == "ip" && ip_matches(&entry.id, &identity.id))
        }
        scheme => identities.iter().any(|identity| identity.scheme == scheme && identity.id == entry.id),
    };
    let granted = acl.iter().any(|entry| entry.permissions.0 & wanted.0 != 0 && grants(entry));
    if granted { Ok(()) } else { Err(Code::NO_AUTH) }
}

fn is_ip(id: &str) -> bool {
    ip_and_bits(id).is_some()
}

/// An address and how many of its bits count, as in `10.0.0.0/8`.
fn ip_and_bits(id: &str) -> Option<(Vec<u8>, usize)> {
    let (address, bits) = id.split_once('/').map_or((id, None), |(address, bits)| (address, Some(bits)));
    let bytes = match address.parse::<IpAddr>().ok()? {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let all = bytes.len() * 8;
    let bits = bits.map_or(Some(all), |bits| bits.parse().ok())?;
    (bits <= all).then_some((bytes, bits))
}

fn ip_matches(rule: &str, address: &str) -> bool {
    let (Some((rule, bits)), Some((address, _))) = (ip_and_bits(rule), ip_and_bits(address)) else {
        return false;
    };
    let bit = |bytes: &[u8], index: usize| bytes[index / 8] >> (7 - index % 8) & 1;
    rule.len() == address.len() && (0..bits).all(|index| bit(&rule, index) == bit(&address, index))
}
