//! The part of reconciliation that talks to a switch.

use super::copies::{self, Copier, Copies};
use super::diff::{Plan, Ranks, Update, diff};
use super::state::{Duplicate, State};
use p4runtime::client::{Outcome, Session};
use p4runtime::entry::read_entity;
use p4runtime::info::Index;
use p4runtime::v1;
use p4runtime::v1::write_request::Atomicity;
use std::collections::BTreeMap;
use std::fmt;

/// Most updates that one write carries.
pub const LARGEST_BATCH: usize = 1000;

/// An update that a switch did not do, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was to be done: verb, table, match and action by name.
    pub update: String,
    /// What the switch said.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.update, self.reason)
    }
}

/// Why a switch could not be brought to its desired state.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] p4runtime::client::Error),
    /// Some updates were not done; the others were.
    #[error("{} of {attempted} updates were not done; the first: {first}", refusals.len())]
    Refused {
        /// Updates that were sent.
        attempted: usize,
        /// The first one that was not done.
        first: Refusal,
        /// All that were not done, the first included.
        refusals: Vec<Refusal>,
    },
    /// The switch says that all was done, but does not hold what was written.
    #[error("the switch accepted every update and still differs in {count}; the first: {first}")]
    NotKept {
        /// Updates that would be needed.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// The switch returned the same entry twice.
    #[error(transparent)]
    Duplicate(#[from] Duplicate),
}

/// What reconciliation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Entries that the switch held before, multicast groups and clone sessions included, as in all that follow.
    pub found: usize,
    /// Entries inserted.
    pub inserted: usize,
    /// Entries changed, default actions included.
    pub modified: usize,
    /// Entries removed.
    pub deleted: usize,
    /// Write requests.
    pub batches: usize,
}

impl Report {
    /// Updates in all.
    #[must_use]
    pub fn updates(&self) -> usize {
        self.inserted + self.modified + self.deleted
    }

    fn of(plan: &Plan, found: usize) -> Self {
        let mut report = Self {
            found,
            batches: plan.batches.len(),
            ..Self::default()
        };
        for update in plan.updates() {
            match update {
                Update::Insert(..) | Update::InsertCopies(..) => report.inserted += 1,
                Update::Modify(..) | Update::Default(..) | Update::ModifyCopies(..) => {
                    report.modified += 1;
                }
                Update::Delete(..) | Update::DeleteCopies(..) => report.deleted += 1,
            }
        }
        report
    }
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.inserted += other.inserted;
        self.modified += other.modified;
        self.deleted += other.deleted;
        self.batches += other.batches;
    }
}

/// An update in words: `insert table entry route_v4 vrf=1 ... -> route_group(...)`.
#[must_use]
pub fn describe(index: &Index, update: &Update) -> String {
    match update {
        Update::InsertCopies(copier, _)
        | Update::ModifyCopies(copier, _)
        | Update::DeleteCopies(copier) => format!("{} {copier}", update.verb()),
        _ => {
            let entity = update.to_wire().entity.unwrap_or_default();
            format!("{} {}", update.verb(), read_entity(index, &entity))
        }
    }
}

/// Reads what the switch holds: all entries of tables whose entries can change, default actions that are not the
/// program's, multicast groups and clone sessions.
///
/// # Errors
/// The session's, or an answer with one entry twice.
pub async fn read_state(session: &Session, index: &Index) -> Result<State, Error> {
    let pattern = |entry| v1::Entity {
        entity: Some(v1::entity::Entity::TableEntry(entry)),
    };
    let mut patterns = vec![pattern(v1::TableEntry::default())];
    let tables = || index.p4info().tables.iter();
    let id = |table: &p4runtime::config::v1::Table| table.preamble.as_ref().map_or(0, |p| p.id);
    // A default action that the program fixes cannot be anything else.
    for table in tables().filter(|t| t.const_default_action_id == 0) {
        patterns.push(pattern(v1::TableEntry {
            table_id: id(table),
            is_default_action: true,
            ..Default::default()
        }));
    }
    patterns.extend(copies::patterns());
    let entities = session.read_all(patterns).await?;
    let copies = entities.iter().filter_map(|entity| match &entity.entity {
        Some(v1::entity::Entity::PacketReplicationEngineEntry(entry)) => copies::read(entry),
        _ => None,
    });
    let copies: BTreeMap<Copier, Copies> = copies.collect();
    let fixed: Vec<u32> = tables().filter(|t| t.is_const_table).map(id).collect();
    let initial = |table_id: u32| {
        let table = tables().find(|t| id(t) == table_id)?;
        table.initial_default_action.as_ref()
    };
    let mut state = State::from_entries(entities.into_iter().filter_map(
        |entity| match entity.entity {
            Some(v1::entity::Entity::TableEntry(entry)) if !fixed.contains(&entry.table_id) => {
                Some(entry)
            }
            _ => None,
        },
    ))?;
    state
        .defaults
        .retain(|table, action| initial(*table).is_some_and(|initial| !action.is_initial(initial)));
    state.copies = copies;
    Ok(state)
}

/// Writes one batch; every update is tried.
///
/// # Errors
/// [`Error::Refused`] with all updates that were not done, by name.
pub async fn write_batch(session: &Session, index: &Index, batch: &[Update]) -> Result<(), Error> {
    let updates = batch.iter().map(Update::to_wire).collect();
    let report = session.write(updates, Atomicity::ContinueOnError).await?;
    if report.is_done() {
        return Ok(());
    }
    let ended = report
        .ended
        .as_ref()
        .map_or("the call failed", |status| status.message());
    let refusals: Vec<Refusal> = batch
        .iter()
        .zip(&report.outcomes)
        .filter_map(|(update, outcome)| {
            let reason = match outcome {
                Outcome::Done => return None,
                Outcome::Failed(error) => error.to_string(),
                Outcome::Unknown => format!("not known: {ended}"),
                Outcome::NotSent => format!("not sent: {ended}"),
            };
            Some(Refusal {
                update: describe(index, update),
                reason,
            })
        })
        .collect();
    match refusals.first().cloned() {
        Some(first) => Err(Error::Refused {
            attempted: batch.len(),
            first,
            refusals,
        }),
        None => Ok(()),
    }
}

/// Writes what is always there and only has to be set, such as meters.
///
/// # Errors
/// The session's, with the updates that were not done.
pub async fn write_resources(
    session: &Session,
    updates: &[v1::Update],
) -> Result<(), p4runtime::client::Error> {
    if updates.is_empty() {
        return Ok(());
    }
    session.write_all(updates.to_vec()).await
}

/// Writes all batches of a plan in order, and stops at the first that is not done completely: what
/// follows may refer to what is missing.
///
/// # Errors
/// As [`write_batch`].
pub async fn write_plan(session: &Session, index: &Index, plan: &Plan) -> Result<(), Error> {
    for batch in &plan.batches {
        write_batch(session, index, batch).await?;
    }
    Ok(())
}

/// Brings the switch to `desired`: reads, compares, writes, and reads again to see that it took.
///
/// # Errors
/// The session's; updates that the switch refused; a switch that does not keep what it accepted.
pub async fn reconcile(
    session: &Session,
    index: &Index,
    desired: &State,
    ranks: &Ranks,
) -> Result<Report, Error> {
    let actual = read_state(session, index).await?;
    let plan = diff(desired, &actual, ranks, LARGEST_BATCH);
    let report = Report::of(&plan, actual.entries.len() + actual.copies.len());
    if plan.is_empty() {
        return Ok(report);
    }
    write_plan(session, index, &plan).await?;
    let after = read_state(session, index).await?;
    let rest = diff(desired, &after, ranks, LARGEST_BATCH);
    match rest.updates().next() {
        None => Ok(report),
        Some(update) => Err(Error::NotKept {
            count: rest.len(),
            first: describe(index, update),
        }),
    }
}
