//! Names of the members' nodes, and the order in which members share the items. Both are those of kazoo's
//! `SetPartitioner`.

use uuid::Uuid;

/// Returns a new name for a member's node: a random id and the member's identity.
pub(super) fn member_name(identity: &str) -> String {
    format!("{}-{identity}", Uuid::new_v4().simple())
}

/// Returns the identity in the name of a member's node, or `None` for other nodes.
pub fn identity(name: &str) -> Option<&str> {
    let (id, identity) = name.split_once('-')?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(identity)
}

/// Returns the members among the `names` of nodes, ordered by identity. All members agree on this order.
pub(super) fn members<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut members: Vec<_> = names.into_iter().filter(|name| identity(name).is_some()).collect();
    members.sort_by_key(|name| (identity(name), *name));
    members.into_iter().map(str::to_owned).collect()
}

/// Returns the items of the member `own` among the sorted `items`: starting with its position in the order,
/// every n-th item, where n is the number of members. Returns no items if `own` is not a member.
pub(super) fn share_of(own: &str, members: &[String], items: &[String]) -> Vec<String> {
    match members.iter().position(|member| member == own) {
        Some(place) => items.iter().skip(place).step_by(members.len()).cloned().collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: char, identity: &str) -> String {
        format!("{}-{identity}", id.to_string().repeat(32))
    }

    #[test]
    fn members_agree_on_an_order_and_foreign_names_do_not_count() {
        let names = [name('f', "a-1"), name('0', "b"), "x-c".to_owned(), name('g', "d"), name('e', "a-1")];
        let expected = [name('e', "a-1"), name('f', "a-1"), name('0', "b")];
        assert_eq!(members(names.iter().map(String::as_str)), expected);
        assert_eq!(identity(&member_name("host-7")), Some("host-7"));
    }

    #[test]
    fn each_item_has_one_member() {
        let items: Vec<_> = (0..7).map(|n| n.to_string()).collect();
        let members = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(share_of("a", &members, &items), ["0", "3", "6"]);
        assert_eq!(share_of("c", &members, &items), ["2", "5"]);
        assert!(share_of("x", &members, &items).is_empty());
        assert!(share_of("c", &members, &items[..2]).is_empty(), "more members than items");
    }
}
