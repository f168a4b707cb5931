//! The shape of p4c's bmv2 JSON, as far as it is regular. Typed values and
//! expressions keep their JSON form; [`super::ast`] reads them.

use serde::Deserialize;
use sonic_rs::Value as Json;

#[derive(Deserialize)]
pub(super) struct Root {
    #[serde(default)]
    pub(super) header_types: Vec<HeaderType>,
    #[serde(default)]
    pub(super) headers: Vec<Header>,
    #[serde(default)]
    pub(super) header_stacks: Vec<Stack>,
    #[serde(default)]
    pub(super) header_union_types: Vec<UnionType>,
    #[serde(default)]
    pub(super) header_unions: Vec<Union>,
    #[serde(default)]
    pub(super) header_union_stacks: Vec<UnionStack>,
    #[serde(default)]
    pub(super) field_lists: Vec<FieldList>,
    #[serde(default)]
    pub(super) errors: Vec<(String, u64)>,
    #[serde(default)]
    pub(super) parsers: Vec<Parser>,
    #[serde(default)]
    pub(super) parse_vsets: Vec<ValueSet>,
    #[serde(default)]
    pub(super) deparsers: Vec<Deparser>,
    #[serde(default)]
    pub(super) meter_arrays: Vec<MeterArray>,
    #[serde(default)]
    pub(super) counter_arrays: Vec<CounterArray>,
    #[serde(default)]
    pub(super) register_arrays: Vec<RegisterArray>,
    #[serde(default)]
    pub(super) calculations: Vec<Calculation>,
    #[serde(default)]
    pub(super) learn_lists: Vec<FieldList>,
    #[serde(default)]
    pub(super) actions: Vec<Action>,
    #[serde(default)]
    pub(super) pipelines: Vec<Pipeline>,
    #[serde(default)]
    pub(super) checksums: Vec<Checksum>,
    #[serde(default)]
    pub(super) extern_instances: Vec<ExternInstance>,
    #[serde(default)]
    pub(super) field_aliases: Vec<(String, (String, String))>,
}

#[derive(Deserialize)]
pub(super) struct HeaderType {
    pub(super) name: String,
    /// `[name, width, signed?]`; the width is `"*"` for a varbit.
    pub(super) fields: Vec<Json>,
    pub(super) max_length: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) header_type: String,
    #[serde(default)]
    pub(super) metadata: bool,
}

#[derive(Deserialize)]
pub(super) struct Stack {
    pub(super) name: String,
    pub(super) header_ids: Vec<u32>,
}

#[derive(Deserialize)]
pub(super) struct UnionType {
    pub(super) name: String,
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Deserialize)]
pub(super) struct Union {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) union_type: String,
    pub(super) header_ids: Vec<u32>,
}

#[derive(Deserialize)]
pub(super) struct UnionStack {
    pub(super) name: String,
    pub(super) header_union_ids: Vec<u32>,
}

#[derive(Deserialize)]
pub(super) struct FieldList {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) elements: Vec<Json>,
}

#[derive(Deserialize)]
pub(super) struct Parser {
    pub(super) name: String,
    pub(super) init_state: Option<String>,
    pub(super) parse_states: Vec<ParseState>,
}

#[derive(Deserialize)]
pub(super) struct ParseState {
    pub(super) name: String,
    #[serde(default)]
    pub(super) parser_ops: Vec<Call>,
    #[serde(default)]
    pub(super) transition_key: Vec<Json>,
    #[serde(default)]
    pub(super) transitions: Vec<Transition>,
}

/// A primitive or a parser operation.
#[derive(Deserialize)]
pub(super) struct Call {
    pub(super) op: String,
    #[serde(default)]
    pub(super) parameters: Vec<Json>,
    pub(super) source_info: Option<SourceInfo>,
}

/// Where in the source something comes from.
#[derive(Deserialize)]
pub(super) struct SourceInfo {
    pub(super) source_fragment: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Transition {
    /// `default`, `hexstr` or `parse_vset`; older compilers leave it out.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) value: Option<String>,
    pub(super) mask: Option<String>,
    pub(super) next_state: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ValueSet {
    pub(super) name: String,
    pub(super) compressed_bitwidth: u32,
}

#[derive(Deserialize)]
pub(super) struct Deparser {
    pub(super) order: Vec<String>,
    #[serde(default)]
    pub(super) primitives: Vec<Call>,
}

#[derive(Deserialize)]
pub(super) struct MeterArray {
    pub(super) name: String,
    #[serde(default)]
    pub(super) is_direct: bool,
    pub(super) rate_count: Option<u32>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) size: u64,
    pub(super) binding: Option<String>,
    pub(super) result_target: Option<(String, String)>,
}

#[derive(Deserialize)]
pub(super) struct CounterArray {
    pub(super) name: String,
    #[serde(default)]
    pub(super) is_direct: bool,
    #[serde(default)]
    pub(super) size: u64,
    pub(super) binding: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RegisterArray {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) bitwidth: u32,
}

#[derive(Deserialize)]
pub(super) struct Calculation {
    pub(super) name: String,
    pub(super) algo: String,
    pub(super) input: Vec<Json>,
}

#[derive(Deserialize)]
pub(super) struct Action {
    pub(super) name: String,
    pub(super) id: u32,
    #[serde(default)]
    pub(super) runtime_data: Vec<RuntimeData>,
    #[serde(default)]
    pub(super) primitives: Vec<Call>,
}

#[derive(Deserialize)]
pub(super) struct RuntimeData {
    pub(super) name: String,
    pub(super) bitwidth: u32,
}

#[derive(Deserialize)]
pub(super) struct Pipeline {
    pub(super) name: String,
    pub(super) init_table: Option<String>,
    #[serde(default)]
    pub(super) tables: Vec<Table>,
    #[serde(default)]
    pub(super) action_profiles: Vec<Profile>,
    #[serde(default)]
    pub(super) conditionals: Vec<Conditional>,
    #[serde(default)]
    pub(super) action_calls: Vec<ActionCall>,
}

#[derive(Deserialize)]
pub(super) struct Profile {
    pub(super) name: String,
    #[serde(default)]
    pub(super) max_size: u64,
    pub(super) selector: Option<Selector>,
}

#[derive(Deserialize)]
pub(super) struct Selector {
    pub(super) algo: String,
    pub(super) input: Vec<Json>,
}

#[derive(Deserialize)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) match_type: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) action_profile: Option<String>,
    #[serde(default)]
    pub(super) max_size: u64,
    #[serde(default)]
    pub(super) support_timeout: bool,
    #[serde(default)]
    pub(super) key: Vec<Key>,
    pub(super) action_ids: Vec<u32>,
    pub(super) next_tables: std::collections::HashMap<String, Option<String>>,
    /// The next node where no action was run; old compilers only.
    #[serde(default)]
    pub(super) base_default_next: Option<String>,
    pub(super) direct_meters: Option<String>,
    pub(super) default_entry: Option<DefaultEntry>,
    #[serde(default)]
    pub(super) entries: Vec<Entry>,
}

#[derive(Deserialize)]
pub(super) struct Key {
    pub(super) match_type: String,
    pub(super) target: Json,
    pub(super) mask: Option<String>,
    pub(super) name: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct DefaultEntry {
    pub(super) action_id: u32,
    #[serde(default)]
    pub(super) action_const: bool,
    #[serde(default)]
    pub(super) action_data: Vec<String>,
    #[serde(default)]
    pub(super) action_entry_const: bool,
}

#[derive(Deserialize)]
pub(super) struct Entry {
    pub(super) match_key: Vec<EntryKey>,
    pub(super) action_entry: EntryAction,
    #[serde(default)]
    pub(super) priority: i64,
}

#[derive(Deserialize)]
pub(super) struct EntryKey {
    pub(super) match_type: String,
    pub(super) key: Option<Json>,
    pub(super) mask: Option<String>,
    pub(super) prefix_length: Option<u32>,
    pub(super) start: Option<String>,
    pub(super) end: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct EntryAction {
    pub(super) action_id: u32,
    #[serde(default)]
    pub(super) action_data: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Conditional {
    pub(super) name: String,
    pub(super) source_info: Option<SourceInfo>,
    pub(super) expression: Json,
    pub(super) true_next: Option<String>,
    pub(super) false_next: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ActionCall {
    pub(super) name: String,
    pub(super) action_id: u32,
    pub(super) next_node: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Checksum {
    pub(super) name: String,
    pub(super) target: (String, String),
    pub(super) calculation: String,
    #[serde(default = "yes")]
    pub(super) verify: bool,
    #[serde(default = "yes")]
    pub(super) update: bool,
    #[serde(default)]
    pub(super) if_cond: Option<Json>,
}

#[derive(Deserialize)]
pub(super) struct ExternInstance {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

fn yes() -> bool {
    true
}
