//! Numbers of sessions in what is serialized.

use serde::{Serialize, Serializer};

/// A session as text, such as `"0x10000a3f"`: JavaScript has no numbers that long.
pub(super) fn text<S: Serializer>(session: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    session.map(|session| format!("{session:#x}")).serialize(serializer)
}
