//! Session ids in serialized output.

use serde::{Serialize, Serializer};

/// Serializes a session as text, such as `"0x10000a3f"`, because JavaScript numbers are too short.
pub(super) fn text<S: Serializer>(session: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    session.map(|session| format!("{session:#x}")).serialize(serializer)
}

/// Like [`text`], for a session that is known.
pub(super) fn of_owner<S: Serializer>(session: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    text(&Some(*session), serializer)
}
