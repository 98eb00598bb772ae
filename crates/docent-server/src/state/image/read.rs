use super::fields::{BadImage, Fields};
use crate::config::Config;
use crate::state::acl;
use crate::state::node::{Lifetime, Node};
use crate::state::origin::Origin;
use crate::state::state::State;
use crate::state::tree::SYSTEM;
use bytes::Bytes;
use docent_proto::{Acl, Permissions, parent, validate_path};
use std::sync::Arc;

impl State {
    /// Loads the state from an image. New numbers come after those of the image and of `origin`. Each session
    /// has its full timeout from `now`.
    pub(crate) fn from_image(
        image: Bytes,
        config: Config,
        origin: Origin,
        now: i64,
    ) -> Result<Self, BadImage> {
        let mut state = Self::new(config, origin);
        let mut fields = Fields::new(image);
        state.database.begin_after(Origin { zxid: number(&mut fields)?, session: number(&mut fields)? });
        let (sessions, nodes) = (fields.u32()?, fields.u32()?);
        for _ in 0..sessions {
            read_session(&mut state, &mut fields)?;
        }
        state.database.tree.clear();
        for _ in 0..nodes {
            read_node(&mut state, &mut fields)?;
        }
        fields.finish()?;
        if SYSTEM.iter().any(|path| state.database.tree.get(path).is_none()) {
            return Err(BadImage("a node that every server has is missing"));
        }
        state.database.sessions.touch_all(now);
        Ok(state)
    }
}

/// Reads the number of a transaction or a session, which must leave room for all later numbers.
fn number(fields: &mut Fields) -> Result<i64, BadImage> {
    let number = fields.i64()?;
    let is_one = (0..1 << 62).contains(&number);
    if is_one { Ok(number) } else { Err(BadImage("a transaction or session number is out of range")) }
}

fn read_session(state: &mut State, fields: &mut Fields) -> Result<(), BadImage> {
    let (id, password, timeout_ms) = (number(fields)?, fields.array()?, fields.i32()?);
    if timeout_ms <= 0 || !state.database.sessions.restore(id, password, timeout_ms) {
        return Err(BadImage("a session has an invalid timeout or a duplicate id"));
    }
    Ok(())
}

fn read_node(state: &mut State, fields: &mut Fields) -> Result<(), BadImage> {
    let path = fields.string()?;
    let data = if is_present(fields)? { Some(fields.bytes()?) } else { None };
    let (lifetime, acl) = (read_lifetime(fields)?, read_acl(fields)?);
    let mut node = Node::new(data, acl, lifetime, 0, 0);
    for number in [&mut node.czxid, &mut node.mzxid, &mut node.pzxid, &mut node.ctime, &mut node.mtime] {
        *number = fields.i64()?;
    }
    for number in [&mut node.version, &mut node.aversion, &mut node.creates] {
        *number = fields.i32()?;
    }
    if !fits(state, &path, lifetime) {
        return Err(BadImage("a node is a duplicate, or has an invalid path, parent or owner"));
    }
    state.database.restore(&path, node);
    Ok(())
}

fn is_present(fields: &mut Fields) -> Result<bool, BadImage> {
    match fields.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(BadImage("a flag is neither 0 nor 1")),
    }
}

fn read_lifetime(fields: &mut Fields) -> Result<Lifetime, BadImage> {
    match (fields.u8()?, fields.i64()?) {
        (0, _) => Ok(Lifetime::Persistent),
        (1, owner) => Ok(Lifetime::Ephemeral(owner)),
        (2, _) => Ok(Lifetime::Container),
        (3, ttl @ 1..=Lifetime::LONGEST_TTL_MS) => Ok(Lifetime::Ttl(ttl)),
        _ => Err(BadImage("a node has an unknown kind")),
    }
}

fn read_acl(fields: &mut Fields) -> Result<Arc<[Acl]>, BadImage> {
    let mut acl = Vec::new();
    for _ in 0..fields.u32()? {
        let permissions = Permissions(fields.i32()?);
        acl.push(Acl { permissions, scheme: fields.string()?.into(), id: fields.string()?.into() });
    }
    Ok(acl::shared(acl))
}

/// Returns whether a server could have created the node: its path is valid and new, its parent may have
/// children, and its owner exists.
fn fits(state: &State, path: &str, lifetime: Lifetime) -> bool {
    let (tree, sessions) = (&state.database.tree, &state.database.sessions);
    let has_parent = || {
        let above = parent(path).and_then(|parent| tree.get(parent));
        above.is_some_and(|node| !matches!(node.lifetime, Lifetime::Ephemeral(_)))
    };
    let has_owner = match lifetime {
        Lifetime::Ephemeral(owner) => sessions.get(owner).is_some(),
        Lifetime::Persistent | Lifetime::Container | Lifetime::Ttl(_) => true,
    };
    let is_new = validate_path(path).is_ok() && tree.get(path).is_none();
    let stays = lifetime == Lifetime::Persistent || !SYSTEM.contains(&path);
    is_new && stays && has_owner && (path == "/" || has_parent())
}
