/// Form of a value in a request or a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// Path. It is below the script's root if it begins with a slash.
    Path,
    /// String that is not a path.
    Text,
    /// Bytes.
    Data,
    /// Number of 32 bits.
    Int,
    /// Number of 64 bits.
    Long,
    /// One byte.
    Bool,
    /// Access control list.
    Acl,
    /// List of paths.
    Paths,
    /// Transaction that the session has seen.
    Seen,
    /// Operations of a multi.
    Operations,
    /// Metadata of a node.
    Stat,
    /// Names of children, or paths, in no defined order.
    Names,
    /// Identities of a link.
    Identities,
    /// Results of a multi.
    Results,
}

/// An operation of the protocol: its number, and the forms of its request and its reply.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// Name of the operation in the text of a script.
    pub name: &'static str,
    pub(crate) code: i32,
    /// Fixed number of the request, if the link does not number it.
    pub(crate) xid: Option<i32>,
    pub(crate) writes: bool,
    pub(crate) request: &'static [Field],
    pub(crate) reply: &'static [Field],
}

impl Operation {
    /// Returns the operation with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        OPERATIONS.iter().find(|operation| operation.name == name)
    }

    /// Returns the operation with this number, for decoding the results of a multi.
    pub(crate) fn of_code(code: i32) -> Option<&'static Self> {
        OPERATIONS.iter().find(|operation| operation.code == code)
    }
}

const fn read(
    name: &'static str,
    code: i32,
    request: &'static [Field],
    reply: &'static [Field],
) -> Operation {
    Operation { name, code, xid: None, writes: false, request, reply }
}

const fn write(
    name: &'static str,
    code: i32,
    request: &'static [Field],
    reply: &'static [Field],
) -> Operation {
    Operation { writes: true, ..read(name, code, request, reply) }
}

const fn numbered(name: &'static str, code: i32, xid: i32, request: &'static [Field]) -> Operation {
    Operation { xid: Some(xid), ..read(name, code, request, &[]) }
}

use Field::{
    Acl, Bool, Data, Identities, Int, Long, Names, Operations, Path, Paths, Results, Seen, Stat, Text,
};

/// Every operation that scripts know.
static OPERATIONS: &[Operation] = &[
    write("create", 1, &[Path, Data, Acl, Int], &[Path]),
    write("create2", 15, &[Path, Data, Acl, Int], &[Path, Stat]),
    write("create-container", 19, &[Path, Data, Acl, Int], &[Path, Stat]),
    write("create-ttl", 21, &[Path, Data, Acl, Int, Long], &[Path, Stat]),
    write("delete", 2, &[Path, Int], &[]),
    read("exists", 3, &[Path, Bool], &[Stat]),
    read("get", 4, &[Path, Bool], &[Data, Stat]),
    write("set", 5, &[Path, Data, Int], &[Stat]),
    read("get-acl", 6, &[Path], &[Acl, Stat]),
    write("set-acl", 7, &[Path, Acl, Int], &[Stat]),
    read("children", 8, &[Path, Bool], &[Names]),
    read("children2", 12, &[Path, Bool], &[Names, Stat]),
    read("sync", 9, &[Path], &[Path]),
    numbered("ping", 11, -2, &[]),
    write("check", 13, &[Path, Int], &[]),
    write("multi", 14, &[Operations], &[Results]),
    read("multi-read", 22, &[Operations], &[Results]),
    write("reconfig", 16, &[Text, Text, Text, Long], &[Data, Stat]),
    read("check-watches", 17, &[Path, Int], &[]),
    read("remove-watches", 18, &[Path, Int], &[]),
    numbered("auth", 100, -4, &[Int, Text, Data]),
    numbered("set-watches", 101, -8, &[Seen, Paths, Paths, Paths]),
    read("sasl", 102, &[Data], &[Data]),
    read("ephemerals", 103, &[Path], &[Names]),
    read("count", 104, &[Path], &[Int]),
    numbered("set-watches2", 105, -8, &[Seen, Paths, Paths, Paths, Paths, Paths]),
    read("add-watch", 106, &[Path, Int], &[Int]),
    read("who-am-i", 107, &[], &[Identities]),
    write("close", -11, &[], &[]),
];
