//! Access control lists: their format, and the operations that they permit.

use docent_proto::{Acl, ClientInfo, Code, Permissions};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

/// An identity of a client, which consists of a scheme and an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) scheme: String,
    pub(crate) id: String,
}

/// Scheme of the super user's identity, which passes every check. No access control list names it.
pub(super) const SUPER: &str = "super";

/// Scheme of identities that were proved with SASL.
pub(super) const SASL: &str = "sasl";

impl Identity {
    /// Returns the identity without secrets, for display.
    pub(crate) fn client(&self) -> ClientInfo {
        let user = match self.scheme.as_str() {
            "digest" => self.id.split(':').next().unwrap_or_default(),
            _ => &self.id,
        };
        ClientInfo { scheme: self.scheme.clone(), user: user.to_owned() }
    }
}

static OPEN: LazyLock<Arc<[Acl]>> = LazyLock::new(|| Acl::open().into());

/// Returns the list that permits everyone everything. All nodes share one copy.
pub(crate) fn open() -> Arc<[Acl]> {
    Arc::clone(&OPEN)
}

/// Returns the bytes that a list takes up. The open list and that of `/zookeeper/config` are shared and count
/// 0.
pub(crate) fn weight(list: &[Acl]) -> usize {
    let is_shared = *list == **OPEN || *list == **READ_ONLY;
    if is_shared { 0 } else { list.iter().map(|entry| named(&entry.scheme, &entry.id)).sum() }
}

/// Returns the bytes that an identity, or an entry of a list, takes up.
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

/// Converts a list that a client sent into the list to store, without duplicates, and with `auth` replaced by
/// the client's identities.
///
/// # Errors
/// [`Code::INVALID_ACL`] if the list is empty, names an unknown scheme, or contains `auth` although the
/// client has not authenticated. `has_sasl` is true if the server offers SASL.
pub(crate) fn fix(acl: &[Acl], identities: &[Identity], has_sasl: bool) -> Result<Arc<[Acl]>, Code> {
    let mut fixed: Vec<Acl> = Vec::new();
    for (index, entry) in acl.iter().enumerate() {
        if acl[..index].contains(entry) {
            continue;
        }
        match &*entry.scheme {
            "world" if entry.id == "anyone" => fixed.push(entry.clone()),
            "auth" => fixed.extend(authenticated(entry, identities)?),
            "digest" if is_digest(&entry.id) => fixed.push(entry.clone()),
            "ip" if is_ip(&entry.id) => fixed.push(entry.clone()),
            SASL if has_sasl && !entry.id.is_empty() => fixed.push(entry.clone()),
            _ => return Err(Code::INVALID_ACL),
        }
    }
    if fixed.is_empty() { Err(Code::INVALID_ACL) } else { Ok(shared(fixed)) }
}

/// Converts the list for storage. The open list and the read-only list are replaced by their shared copies.
pub(crate) fn shared(list: Vec<Acl>) -> Arc<[Acl]> {
    match &*list {
        same if *same == **OPEN => open(),
        same if *same == **READ_ONLY => read_only(),
        _ => list.into(),
    }
}

fn authenticated(entry: &Acl, identities: &[Identity]) -> Result<Vec<Acl>, Code> {
    let entries: Vec<Acl> = identities
        .iter()
        .filter(|identity| !matches!(identity.scheme.as_str(), "ip" | SUPER))
        .map(|identity| Acl {
            permissions: entry.permissions,
            scheme: identity.scheme.clone().into(),
            id: identity.id.clone().into(),
        })
        .collect();
    if entries.is_empty() { Err(Code::INVALID_ACL) } else { Ok(entries) }
}

/// Checks that `acl` grants one of the `wanted` permissions to a client with these identities.
///
/// # Errors
/// [`Code::NO_AUTH`] if it does not.
pub(crate) fn check(acl: &[Acl], wanted: Permissions, identities: &[Identity]) -> Result<(), Code> {
    let grants = |entry: &Acl| match &*entry.scheme {
        "world" => true,
        "ip" => {
            identities.iter().any(|identity| identity.scheme == "ip" && ip_matches(&entry.id, &identity.id))
        }
        scheme => identities.iter().any(|identity| identity.scheme == scheme && identity.id == entry.id),
    };
    let is_super = || identities.iter().any(|identity| identity.scheme == SUPER);
    let granted = acl.iter().any(|entry| entry.permissions.0 & wanted.0 != 0 && grants(entry)) || is_super();
    if granted { Ok(()) } else { Err(Code::NO_AUTH) }
}

/// Returns whether the id consists of a user and a hash. Like Java's `split`, it ignores colons at the end.
fn is_digest(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

fn is_ip(id: &str) -> bool {
    ip_and_bits(id).is_some()
}

/// Parses an address and its number of significant bits, as in `10.0.0.0/8`. ZooKeeper only supports IPv4
/// here.
fn ip_and_bits(id: &str) -> Option<(u32, u32)> {
    let (address, bits) = id.split_once('/').map_or((id, None), |(address, bits)| (address, Some(bits)));
    let bits = bits.map_or(Some(32), |bits| bits.parse().ok())?;
    (bits <= 32).then_some((ipv4(address)?, bits))
}

/// Parses an address of four decimal parts, each of which may have a sign and leading zeros.
fn ipv4(address: &str) -> Option<u32> {
    let parts =
        address.split('.').map(|part| part.parse().ok().and_then(|part: i32| u8::try_from(part).ok()));
    let bytes: Vec<u8> = parts.collect::<Option<_>>()?;
    bytes.try_into().ok().map(u32::from_be_bytes)
}

fn ip_matches(rule: &str, address: &str) -> bool {
    let (Some((rule, bits)), Some(address)) = (ip_and_bits(rule), ipv4(address)) else { return false };
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    rule & mask == address & mask
}

/// Formats an address as Java does.
pub(crate) fn host(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => address.segments().map(|part| format!("{part:x}")).join(":"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_taken_and_refused_as_by_zookeeper() {
        for (scheme, taken, refused) in [
            ("digest", &["a:b", ":b", "a:b::"][..], &["", "a", "a:", ":", ":::", "::b", "a:b:c"][..]),
            (
                "ip",
                &["127.0.0.1", "127.0.0.1/0", "127.0.0.1/32", "+1.02.3.4", "1.2.3.4/+8", "1.2.3.4/08"],
                &[
                    "",
                    "1.2.3",
                    "1.2.3.4.5",
                    "1.2.3.256",
                    "1..3.4",
                    " 1.2.3.4",
                    "1.2.3.4/",
                    "1.2.3.4/33",
                    "1.2.3.4/-1",
                    "1.2.3.4/8/1",
                    "1.2.3.4/x",
                    "::1",
                    "::1/128",
                    "localhost",
                ],
            ),
            ("world", &["anyone"], &["", "someone"]),
            ("super", &[], &["", "super"]),
            ("sasl", &[], &["user"]),
            ("", &[], &["", "anyone"]),
        ] {
            let fixed = |id: &&str| {
                let entry =
                    Acl { permissions: Permissions::ALL, scheme: scheme.into(), id: (*id).to_owned().into() };
                fix(&[entry], &[], false).is_ok()
            };
            assert!(taken.iter().all(fixed), "{scheme}: {taken:?}");
            assert!(!refused.iter().any(fixed), "{scheme}: {refused:?}");
        }
    }

    #[test]
    fn an_address_is_matched_by_its_first_bits() {
        for (rule, matches) in [
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("127.0.0.3/30", true),
            ("127.0.0.3/31", false),
            ("126.0.0.0/7", true),
            ("10.0.0.0/8", false),
            ("0.0.0.0/0", true),
            ("127.255.0.0/8", true),
        ] {
            assert_eq!(ip_matches(rule, "127.0.0.1"), matches, "{rule}");
            assert!(!ip_matches(rule, "0:0:0:0:0:0:0:1"), "{rule}");
        }
    }

    #[test]
    fn addresses_are_written_as_by_java() {
        for (address, written) in
            [("127.0.0.1", "127.0.0.1"), ("::ffff:10.1.2.3", "10.1.2.3"), ("fe80::1", "fe80:0:0:0:0:0:0:1")]
        {
            assert_eq!(host(address.parse().unwrap()), written);
        }
    }
}
