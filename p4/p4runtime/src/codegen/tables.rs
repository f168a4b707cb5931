//! Code for tables and their actions.

use std::fmt::Write as _;

use super::names::{self, Names};
use super::{
    DERIVES, Error, RESULT, TYPED, V1, full_name, literal, name_of, rust_type, width_text,
};
use crate::config::v1::{Action, ActionProfile};
use crate::info::{Field, Index, MatchKind, Table, in_entries};

/// The key, the actions and what ties them together.
pub(super) fn table(code: &mut String, types: &mut Names, table: Table<'_>) -> Result<(), Error> {
    let (name, label) = (table.name(), literal(table.name()));
    let camel = names::camel(name)?;
    let key = types.take(&camel, name)?;
    let fields = fields(&table)?;
    let action = match table.action_profile() {
        Some(_) => format!("{TYPED}::Indirect"),
        None => {
            let action = types.take(&format!("{camel}Action"), &format!("{name}'s actions"))?;
            let actions = table
                .actions()
                .filter(|(_, reference)| in_entries(reference));
            let actions: Vec<&Action> = actions.map(|(action, _)| action).collect();
            calls(
                code,
                &action,
                &format!("an entry of [`{key}`]"),
                name,
                &actions,
            )?;
            action
        }
    };
    let _ = write!(
        code,
        "
/// The key of an entry of table `{full}`, which holds {size} entries.
{DERIVES}
pub struct {key} {{
{declared}}}

impl {TYPED}::TableKey for {key} {{
    type Action = {action};
    const ID: u32 = {id};
    const NAME: &'static str = {label};
    const SIZE: u64 = {size};

    #[allow(unused_variables)]
    fn write(&self, fields: &mut {TYPED}::MatchWriter) -> {RESULT}<(), {TYPED}::Error> {{
{written}        Ok(())
    }}

    fn read(fields: &{TYPED}::MatchReader<'_>) -> {RESULT}<Self, {TYPED}::Error> {{
        fields.only(&[{ids}])?;
        Ok(Self {{
{read}        }})
    }}
}}
",
        full = full_name(table.proto().preamble.as_ref()),
        id = table.id(),
        size = table.proto().size.max(0),
        declared = fields.declared,
        written = fields.written,
        read = fields.read,
        ids = fields.ids.join(", "),
    );
    if let Some(counter) = table.direct_counter() {
        let preamble = counter.preamble.as_ref();
        let _ = write!(
            code,
            "
/// Counted by `{}`.
impl {TYPED}::Counted for {key} {{
    const COUNTER_ID: u32 = {};
}}
",
            name_of(preamble),
            preamble.map_or(0, |p| p.id),
        );
    }
    Ok(())
}

/// The lines that the fields of a key make.
#[derive(Default)]
struct KeyCode {
    ids: Vec<String>,
    declared: String,
    written: String,
    read: String,
}

fn fields(table: &Table<'_>) -> Result<KeyCode, Error> {
    let mut names = Names::new();
    let mut code = KeyCode::default();
    if table.needs_priority() {
        // First, so that the order of keys is that of priorities.
        let priority = names.take("priority", "the priority")?;
        let _ = writeln!(code.declared, "    /// Above 0; the larger number wins.");
        let _ = writeln!(code.declared, "    pub {priority}: i32,");
        let _ = writeln!(code.written, "        fields.priority(self.priority)?;");
        let _ = writeln!(code.read, "            priority: fields.priority(),");
    }
    for field in table.fields() {
        let field = field?;
        let rust = names.take(&names::snake(field.name())?, field.name())?;
        let (kind, args) = (field.kind, arguments(&field));
        let doc = match kind {
            MatchKind::Exact => "equal",
            MatchKind::Lpm => "the longest prefix",
            MatchKind::Ternary => "equal under a mask",
            MatchKind::Range => "in a range, or anything",
            MatchKind::Optional => "equal, or anything",
        };
        let width = width_text(field.proto().bitwidth);
        let _ = writeln!(code.declared, "    /// {width}: {doc}.");
        let _ = writeln!(code.declared, "    pub {rust}: {},", field_type(&field));
        let _ = writeln!(
            code.written,
            "        fields.{kind}({args}, &self.{rust})?;"
        );
        let _ = writeln!(code.read, "            {rust}: fields.{kind}({args})?,");
        code.ids.push(field.id().to_string());
    }
    Ok(code)
}

fn arguments(field: &Field<'_>) -> String {
    format!(
        "{}, {}, {}",
        field.id(),
        literal(field.name()),
        field.width()
    )
}

fn field_type(field: &Field<'_>) -> String {
    let number = rust_type(field.proto().bitwidth);
    match field.kind {
        MatchKind::Exact => number.to_owned(),
        MatchKind::Lpm => format!("{TYPED}::Lpm<{number}>"),
        MatchKind::Ternary => format!("{TYPED}::Ternary<{number}>"),
        MatchKind::Range => format!("::std::option::Option<{TYPED}::Range<{number}>>"),
        MatchKind::Optional => format!("::std::option::Option<{number}>"),
    }
}

/// The actions of a profile's members, and its id.
pub(super) fn profile(
    code: &mut String,
    types: &mut Names,
    index: &Index,
    profile: &ActionProfile,
) -> Result<(), Error> {
    let name = name_of(profile.preamble.as_ref());
    let ty = types.take(&format!("{}Member", names::camel(name)?), name)?;
    let tables = profile.table_ids.iter();
    let table = tables.filter_map(|id| index.table(*id).ok()).next();
    let actions = table.into_iter().flat_map(|table| table.actions());
    let actions = actions.filter(|(_, reference)| in_entries(reference));
    let actions: Vec<&Action> = actions.map(|(action, _)| action).collect();
    calls(code, &ty, &format!("a member of `{name}`"), name, &actions)?;
    let id = profile.preamble.as_ref().map_or(0, |p| p.id);
    let _ = write!(
        code,
        "
impl {ty} {{
    /// Id of the action profile.
    pub const PROFILE_ID: u32 = {id};

    /// A member with this action.
    ///
    /// # Errors
    /// When an argument has more bits than its parameter.
    pub fn to_member(&self, member_id: u32) -> {RESULT}<{V1}::ActionProfileMember, {TYPED}::Error> {{
        let action = {TYPED}::Call::to_table_action(self)?;
        Ok({V1}::ActionProfileMember {{
            action_profile_id: Self::PROFILE_ID,
            member_id,
            action: Some({TYPED}::single_action({label}, &action)?.clone()),
        }})
    }}
}}
",
        label = literal(name),
    );
    Ok(())
}

/// An enum of actions.
fn calls(
    code: &mut String,
    ty: &str,
    whose: &str,
    table: &str,
    actions: &[&Action],
) -> Result<(), Error> {
    let (mut variants, mut written, mut read) = (String::new(), String::new(), String::new());
    let mut names = Names::new();
    for action in actions {
        // No parameter's name in Rust ends like `values_`, so none shadows it.
        let preamble = action.preamble.as_ref();
        let name = name_of(preamble);
        let (id, label) = (preamble.map_or(0, |p| p.id), literal(name));
        let variant = names.take(&names::camel(name)?, name)?;
        let mut params = Names::new();
        let (mut declared, mut bound) = (String::new(), Vec::new());
        let (mut puts, mut gets) = (String::new(), String::new());
        for param in &action.params {
            let rust = params.take(&names::snake(&param.name)?, &param.name)?;
            let args = format!("{}, {}, {}", param.id, literal(&param.name), param.bitwidth);
            let number = rust_type(param.bitwidth);
            let _ = writeln!(declared, "        /// {}.", width_text(param.bitwidth));
            let _ = writeln!(declared, "        {rust}: {number},");
            let _ = writeln!(puts, "                values_.put({args}, {rust})?;");
            let _ = writeln!(gets, "                    {rust}: values.get({args})?,");
            bound.push(rust);
        }
        let count = bound.len();
        let _ = writeln!(variants, "    /// `{}`.", full_name(preamble));
        if bound.is_empty() {
            let _ = writeln!(variants, "    {variant},");
        } else {
            let _ = writeln!(variants, "    {variant} {{\n{declared}    }},");
        }
        let mutable = if bound.is_empty() { "" } else { "mut " };
        let pattern = match bound.is_empty() {
            true => String::new(),
            false => format!(" {{ {} }}", bound.join(", ")),
        };
        let _ = write!(
            written,
            "            Self::{variant}{pattern} => {{
                let {mutable}values_ = {TYPED}::ArgumentWriter::new({label});
{puts}                Ok(values_.into_table_action({id}))
            }}
"
        );
        let values = if bound.is_empty() { "_" } else { "values" };
        let built = match bound.is_empty() {
            true => String::new(),
            false => format!(" {{\n{gets}                }}"),
        };
        let _ = write!(
            read,
            "            {id} => {{
                let {values} = {TYPED}::ArgumentReader::of_action({label}, action, {count})?;
                Ok(Self::{variant}{built})
            }}
"
        );
    }
    // A match on a reference to an enum without variants needs an arm.
    let written = match actions.is_empty() {
        true => "            _ => unreachable!(\"there are no actions\"),\n".to_owned(),
        false => written,
    };
    let label = literal(table);
    let expected = literal(&format!("the actions of {table}"));
    let _ = write!(
        code,
        "
/// What {whose} does.
{DERIVES}
pub enum {ty} {{
{variants}}}

impl {TYPED}::Call for {ty} {{
    fn to_table_action(&self) -> {RESULT}<{V1}::TableAction, {TYPED}::Error> {{
        match self {{
{written}        }}
    }}

    fn try_from_table_action(action: &{V1}::TableAction) -> {RESULT}<Self, {TYPED}::Error> {{
        let action = {TYPED}::single_action({label}, action)?;
        match action.action_id {{
{read}            id => Err({TYPED}::Error::Id {{ of: {expected}, id }}),
        }}
    }}
}}
"
    );
    Ok(())
}

/// An entry of whichever table.
pub(super) fn any_entry(code: &mut String, index: &Index) -> Result<(), Error> {
    let (mut variants, mut from) = (String::new(), String::new());
    let (mut arms, mut key_arms, mut read, mut ids) =
        (String::new(), String::new(), String::new(), String::new());
    for table in index.tables() {
        let (name, ty) = (table.name(), names::camel(table.name())?);
        let action = format!("<{ty} as {TYPED}::TableKey>::Action");
        let _ = writeln!(
            variants,
            "    /// Of table `{name}`.\n    {ty}({ty}, {action}),"
        );
        let _ = write!(
            from,
            "
impl ::std::convert::From<({ty}, {action})> for AnyEntry {{
    fn from((key, action): ({ty}, {action})) -> Self {{
        Self::{ty}(key, action)
    }}
}}
"
        );
        let call = |method: &str| format!("{TYPED}::TableKey::{method}");
        let to = call("to_table_entry");
        let _ = writeln!(
            arms,
            "            Self::{ty}(key, action) => {to}(key, action),"
        );
        let to = call("to_key");
        let _ = writeln!(key_arms, "            Self::{ty}(key, _) => {to}(key),");
        let try_from = format!("<{ty} as {TYPED}::TableKey>::try_from_table_entry");
        let _ = writeln!(
            read,
            "            {} => {try_from}(entry).map(Self::from),",
            table.id()
        );
        let _ = writeln!(ids, "    ({}, {}),", table.id(), literal(name));
    }
    let unreachable = match variants.is_empty() {
        true => "            _ => unreachable!(\"there are no tables\"),\n",
        false => "",
    };
    let count = index.tables().count();
    let _ = write!(
        code,
        "
/// Ids and aliases of the tables, in the order of the P4Info.
pub const TABLES: [(u32, &str); {count}] = [
{ids}];

/// An entry of any table: its key and its action.
{DERIVES}
pub enum AnyEntry {{
{variants}}}

impl AnyEntry {{
    /// The whole entry.
    ///
    /// # Errors
    /// When a value does not fit its field.
    pub fn to_table_entry(&self) -> {RESULT}<{V1}::TableEntry, {TYPED}::Error> {{
        match self {{
{arms}{unreachable}        }}
    }}

    /// The key alone, to delete or read the entry.
    ///
    /// # Errors
    /// When a value does not fit its field.
    pub fn to_key(&self) -> {RESULT}<{V1}::TableEntry, {TYPED}::Error> {{
        match self {{
{key_arms}{unreachable}        }}
    }}

    /// An entry that was read.
    ///
    /// # Errors
    /// When it is of no table of the program, a default entry, or does not have
    /// the program's fields and actions.
    pub fn try_from_table_entry(entry: &{V1}::TableEntry) -> {RESULT}<Self, {TYPED}::Error> {{
        match entry.table_id {{
{read}            id => Err({TYPED}::Error::Id {{ of: \"the tables\", id }}),
        }}
    }}
}}
{from}"
    );
    Ok(())
}
