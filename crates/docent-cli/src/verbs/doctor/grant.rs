//! Entries of access control lists, and what each entry means for the client.

use super::identity::{Identity, user};
use docent::node::{Acl, Permissions};
use std::net::IpAddr;

/// Placeholder that servers show instead of a password hash to clients that may not change the list.
const HIDDEN: &str = "x";

/// Relation of an entry to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// The entry names the client, or everyone.
    Client,
    /// The entry names the client's user. Whether its password matches is not shown.
    User,
    /// The entry names the client's user with another password.
    OtherPassword,
    /// The entry names another identity.
    Other,
    /// The servers did not report enough to know.
    Unknown,
}

/// Describes the list in a sentence: each entry and its relation to the client, and the resulting
/// permissions.
pub(super) fn shown(entries: &[Acl], identity: &Identity) -> String {
    let each: Vec<_> = entries.iter().map(|entry| line(entry, names(entry, identity))).collect();
    let is_super = identity.proved.iter().flatten().any(|proved| proved.scheme == "super");
    let given = entries.iter().filter(|entry| names(entry, identity) == Names::Client);
    let given = given.map(|entry| entry.permissions).reduce(|all, more| all | more);
    let may = match given {
        _ if is_super => "everything, as the super user".to_owned(),
        Some(permissions) => permitted(permissions),
        None => "nothing for certain".to_owned(),
    };
    format!("its access control list is {}; this client may: {may}", each.join(", "))
}

/// Returns the relation of `entry` to the client.
pub(super) fn names(entry: &Acl, identity: &Identity) -> Names {
    let proved = || identity.proved.iter().flatten();
    match &*entry.scheme {
        "world" => Names::Client,
        "digest" => by_password(entry, identity),
        _ if identity.proved.is_none() => Names::Unknown,
        "ip" if proved().any(|proved| proved.scheme == "ip" && is_within(&proved.name, &entry.id)) => {
            Names::Client
        }
        scheme if proved().any(|proved| proved.scheme == scheme && proved.name == entry.id) => Names::Client,
        _ => Names::Other,
    }
}

fn by_password(entry: &Acl, Identity { proved, own }: &Identity) -> Names {
    let Some(own) = own else { return Names::Other };
    let named = user(&entry.id);
    let is_proved =
        |name: &str| proved.iter().flatten().any(|proved| proved.scheme == "digest" && proved.name == name);
    match entry.id.split_once(':') {
        _ if named != user(&own.id) => Names::Other,
        // The servers have no password of this client.
        _ if proved.is_some() && !is_proved(named) => Names::Other,
        Some((_, HIDDEN)) => Names::User,
        _ if entry.id == own.id => Names::Client,
        _ => Names::OtherPassword,
    }
}

/// Returns true if `address` is the address of `entry`, or is in its network, such as `10.1.0.0/16`.
fn is_within(address: &str, entry: &str) -> bool {
    let (network, bits) = match entry.split_once('/') {
        Some((network, bits)) => (network, bits.parse().ok()),
        None => (entry, Some(u32::MAX)),
    };
    let (Ok(address), Ok(network), Some(bits)) = (address.parse(), network.parse(), bits) else {
        return false;
    };
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            share_prefix(address.to_bits().into(), network.to_bits().into(), bits, u32::BITS)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            share_prefix(address.to_bits(), network.to_bits(), bits, u128::BITS)
        }
        _ => false,
    }
}

/// Returns true if the first `bits` of two numbers of `width` bits are equal.
fn share_prefix(one: u128, other: u128, bits: u32, width: u32) -> bool {
    (one ^ other).checked_shr(width.saturating_sub(bits)).unwrap_or(0) == 0
}

fn line(entry: &Acl, names: Names) -> String {
    let id = if entry.scheme == "digest" { user(&entry.id) } else { &entry.id };
    let remark = match names {
        Names::Client => " (this client)",
        Names::User => " (this user, if the password matches)",
        Names::OtherPassword => " (this user with another password)",
        Names::Other => "",
        Names::Unknown => " (unknown whether this client)",
    };
    format!("{} {id}: {}{remark}", entry.scheme, permitted(entry.permissions))
}

fn permitted(permissions: Permissions) -> String {
    match permissions.contains(Permissions::ALL) {
        true => "everything".to_owned(),
        false => permissions.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str = "right";

    fn alice() -> Acl {
        Acl::digest("alice", PASSWORD, Permissions::READ | Permissions::WRITE)
    }

    /// Returns a client of `alice` whose identity the servers did not report.
    fn unreported() -> Identity {
        Identity { proved: None, own: Some(alice()) }
    }

    #[test]
    fn an_entry_names_a_user_by_its_password() {
        assert_eq!(names(&alice(), &unreported()), Names::Client);
        let other = Acl::digest("alice", "wrong", Permissions::ALL);
        assert_eq!(names(&other, &unreported()), Names::OtherPassword);
        let bob = Acl::digest("bob", PASSWORD, Permissions::ALL);
        assert_eq!(names(&bob, &unreported()), Names::Other);
        let hidden = Acl::new(Permissions::ALL, "digest", "alice:x");
        assert_eq!(names(&hidden, &unreported()), Names::User);
        let unproved = Identity { proved: Some(Vec::new()), own: Some(alice()) };
        assert_eq!(names(&alice(), &unproved), Names::Other);
    }

    #[test]
    fn an_address_is_within_its_network() {
        for (entry, is) in [
            ("10.1.2.3", true),
            ("10.1.2.4", false),
            ("10.1.0.0/16", true),
            ("10.2.0.0/16", false),
            ("0.0.0.0/0", true),
            ("10.1.2.3/99", true),
            ("10.1.0.0/x", false),
            ("::/0", false),
        ] {
            assert_eq!(is_within("10.1.2.3", entry), is, "{entry}");
        }
        assert!(is_within("fe80::1", "fe80::/64") && !is_within("fe81::1", "fe80::/64"));
    }

    #[test]
    fn a_list_is_shown_without_hashes_and_with_what_follows_from_it() {
        let entries = [Acl::read_all(), alice(), Acl::digest("bob", "b", Permissions::ALL)];
        assert_eq!(
            shown(&entries, &unreported()),
            "its access control list is world anyone: READ (this client), digest alice: READ | WRITE (this client), \
             digest bob: everything; this client may: READ | WRITE"
        );
        let foreign = [Acl::new(Permissions::ALL, "ip", "10.0.0.1")];
        assert_eq!(
            shown(&foreign, &unreported()),
            "its access control list is ip 10.0.0.1: everything (unknown whether this client); this client may: \
             nothing for certain"
        );
    }
}
