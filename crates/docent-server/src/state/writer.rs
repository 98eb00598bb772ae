use super::commit::Commit;
use super::database::Database;
use super::effects::Effects;
use super::events::Events;
use super::prepare::{Change, Preparation};
use super::refusal::{Notes, Refusal};
use crate::Limits;
use docent_proto::{Code, CreateKind, CreateMode, MultiOp, MultiResult, Request, Response};

/// Executes one write of a session.
pub(crate) struct Writer<'a> {
    database: &'a mut Database,
    limits: &'a Limits,
    commit: Commit,
    refusal: Option<Refusal>,
}

impl<'a> Writer<'a> {
    /// Starts a write, which uses up a transaction number even if it fails.
    pub(crate) fn begin(database: &'a mut Database, limits: &'a Limits, session: i64, now: i64) -> Self {
        let commit = Commit { zxid: database.next_zxid(now), session, now };
        Self { database, limits, commit, refusal: None }
    }

    /// Executes the write.
    pub(crate) fn write(mut self, request: &Request, effects: &mut Effects) -> Result<Response, Code> {
        let result = self.admit().and_then(|()| self.execute(request, &mut effects.events));
        effects.refusal = self.refusal;
        result
    }

    /// Checks that the journal has room for the write.
    fn admit(&mut self) -> Result<(), Code> {
        let mut notes = Notes::default();
        let admitted = notes.admit("journal_bytes", self.database.journal_bytes(), self.limits.journal_bytes);
        self.refusal = notes.into_refusal();
        admitted
    }

    fn execute(&mut self, request: &Request, events: &mut Events) -> Result<Response, Code> {
        if let Request::Multi(ops) = request {
            return self.multi(ops, events);
        }
        let change = self.prepare(|preparation| match request {
            Request::Create(create) => preparation.create(create),
            Request::Delete { path, version } => preparation.delete(path, *version),
            Request::SetData { path, data, version } => preparation.set_data(path, data.as_ref(), *version),
            Request::SetAcl { path, acl, version } => preparation.set_acl(path, acl, *version),
            Request::Check { path, version } => preparation.check(path, *version),
            Request::Reconfig { .. } => Err(Code::RECONFIG_DISABLED),
            _ => Err(Code::UNIMPLEMENTED),
        })?;
        if let Request::Check { path, .. } = request {
            let node = self.database.tree.get(path).ok_or(Code::NO_NODE)?;
            return Ok(Response::Stat(node.stat()));
        }
        Ok(match self.database.commit(self.commit, change, events) {
            MultiResult::Created { path, stat } => Response::Created { path, stat: stat.map(|stat| *stat) },
            MultiResult::Set(stat) => Response::Stat(*stat),
            _ => Response::Empty,
        })
    }

    /// Applies all operations or none. A failure is reported in the results, while the reply as a whole
    /// succeeds.
    fn multi(&mut self, ops: &[MultiOp], events: &mut Events) -> Result<Response, Code> {
        if ops.iter().any(is_read) {
            return Err(Code::MARSHALLING_ERROR);
        }
        let prepared = self.prepare(|preparation| {
            let mut changes = Vec::with_capacity(ops.len());
            for (index, op) in ops.iter().enumerate() {
                if lacks_ttl(op) {
                    return Err(Failure::Whole);
                }
                changes.push(preparation.operation(op).map_err(|code| Failure::At(index, code))?);
            }
            Ok(changes)
        });
        if planted!(WrongMultiRollback)
            && let Err(Failure::At(failed, _)) = prepared
        {
            self.multi(&ops[..failed], events)?;
        }
        match prepared {
            Ok(changes) => Ok(Response::Multi(self.commit_all(changes, events))),
            Err(Failure::At(failed, code)) => Ok(Response::Multi(failures(ops.len(), failed, code))),
            Err(Failure::Whole) => Err(Code::MARSHALLING_ERROR),
        }
    }

    fn commit_all(&mut self, changes: Vec<Change>, events: &mut Events) -> Vec<MultiResult> {
        changes.into_iter().map(|change| self.database.commit(self.commit, change, events)).collect()
    }

    fn prepare<T, E>(&mut self, work: impl FnOnce(&mut Preparation<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut preparation = Preparation::new(self.database, self.limits, self.commit.session);
        let prepared = work(&mut preparation);
        self.refusal = preparation.notes.into_refusal();
        prepared
    }
}

/// Failure of a multi.
enum Failure {
    /// The operation at this index failed with this code.
    At(usize, Code),
    /// The request failed as a whole.
    Whole,
}

/// Returns the results of a multi whose operation at index `failed` failed with `code`.
fn failures(count: usize, failed: usize, code: Code) -> Vec<MultiResult> {
    (0..count)
        .map(|index| {
            MultiResult::Failed(match index.cmp(&failed) {
                std::cmp::Ordering::Less => Code::OK,
                std::cmp::Ordering::Equal => code,
                std::cmp::Ordering::Greater => Code::RUNTIME_INCONSISTENCY,
            })
        })
        .collect()
}

fn is_read(op: &MultiOp) -> bool {
    matches!(op, MultiOp::GetData { .. } | MultiOp::GetChildren { .. })
}

/// Returns whether a create has a mode that needs a time to live, but has none. ZooKeeper refuses the whole
/// multi when it reaches such an operation.
fn lacks_ttl(op: &MultiOp) -> bool {
    let MultiOp::Create(create) = op else { return false };
    let has_ttl = CreateMode::from_flags(create.flags).is_some_and(CreateMode::has_ttl);
    has_ttl && !matches!(create.kind, CreateKind::Ttl(_))
}
