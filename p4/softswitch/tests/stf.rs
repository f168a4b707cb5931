//! Runs packet tests in the STF format of the P4 compiler's test suite.
//!
//! `SOFTSWITCH_STF` names a directory with pairs `X.json` (a compiled program)
//! and `X.stf` (commands, packets in and packets expected). Without it there
//! is nothing to run. Where there is `X.p4info.txt` as well, P4Runtime has to
//! take the two together. `SOFTSWITCH_STF_ONLY` limits the run to names that
//! contain it. A file `known-failures` in the directory lists names, one a
//! line, that may fail.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use softswitch::control::{ActionCall, CloneSession, EntryAction, MatchField, Replica, TableEntry};
use softswitch::program::MatchKind;
use softswitch::server::{Server, ServerConfig};
use softswitch::{Program, SharedSwitch, Switch, SwitchConfig, TableId, Value};

type Result<T> = std::result::Result<T, String>;

#[test]
fn packet_tests() {
    let Some(folder) = std::env::var_os("SOFTSWITCH_STF").map(PathBuf::from) else {
        eprintln!("SOFTSWITCH_STF is not set: no packet tests to run");
        return;
    };
    let only = std::env::var("SOFTSWITCH_STF_ONLY").unwrap_or_default();
    let known = std::fs::read_to_string(folder.join("known-failures")).unwrap_or_default();
    let known: HashSet<&str> = known.lines().map(str::trim).collect();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the directory can be read")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "stf"))
        .filter(|path| path.with_extension("json").exists())
        .collect();
    files.sort();
    let mut failures = Vec::new();
    let mut run = 0;
    for file in &files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.contains(&only) {
            continue;
        }
        run += 1;
        let outcome = catch_unwind(AssertUnwindSafe(|| packet_test(file)));
        let outcome = outcome.unwrap_or_else(|_| Err("it panicked".to_owned()));
        if let Err(why) = outcome {
            eprintln!("FAIL {name}: {why}");
            failures.push(name);
        }
    }
    eprintln!("{} of {run} packet tests pass", run - failures.len());
    failures.retain(|name| !known.contains(name.as_str()));
    assert!(failures.is_empty(), "these fail: {failures:?}");
}

fn packet_test(file: &Path) -> Result<()> {
    let json = std::fs::read(file.with_extension("json")).map_err(|e| e.to_string())?;
    let program = Program::load(&json).map_err(|e| e.to_string())?;
    let info = file.with_extension("p4info.txt");
    if info.exists() {
        bind(&info, json).map_err(|e| format!("{}: {e}", info.display()))?;
    }
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    let mut test = Test {
        switch,
        now: 0,
        nodes: Vec::new(),
        sent: BTreeMap::new(),
        expected: BTreeMap::new(),
    };
    let script = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    for line in script.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            test.command(line).map_err(|e| format!("{line}: {e}"))?;
        }
    }
    test.compare()
}

/// Installs a program by its P4Info, as a controller does.
fn bind(info: &Path, json: Vec<u8>) -> Result<()> {
    let text = std::fs::read_to_string(info).map_err(|e| e.to_string())?;
    let index = p4runtime::info::Index::parse_text(&text).map_err(|e| e.to_string())?;
    let switch = SharedSwitch::new(Switch::new(SwitchConfig::default()));
    let server = Server::new(switch, ServerConfig::default());
    tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|e| e.to_string())?
        .block_on(server.install(index.p4info().clone(), json))
        .map_err(|fault| fault.to_string())
}

struct Test {
    switch: Switch,
    now: u64,
    /// Multicast nodes: instance and ports.
    nodes: Vec<(u16, Vec<u16>)>,
    sent: BTreeMap<u16, Vec<String>>,
    /// `None`: any number of any packets.
    expected: BTreeMap<u16, Option<Vec<String>>>,
}

impl Test {
    fn command(&mut self, line: &str) -> Result<()> {
        let mut words = line.split_whitespace();
        let command = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let number = |i: usize| -> Result<u64> {
            rest.get(i)
                .ok_or("too short")?
                .parse()
                .map_err(|_| "not a number".to_owned())
        };
        match command {
            "packet" => {
                let port = number(0)? as u16;
                let hex = rest[1..].concat();
                self.packet(port, &hex)
            }
            "expect" => {
                let port = number(0)? as u16;
                match rest.len() {
                    1 => {
                        self.expected.insert(port, None);
                    }
                    _ => {
                        let list = self
                            .expected
                            .entry(port)
                            .or_insert_with(|| Some(Vec::new()));
                        if let Some(list) = list {
                            list.push(rest[1..].concat().to_uppercase());
                        }
                    }
                }
                Ok(())
            }
            "add" => self.add(&rest),
            "setdefault" => self.set_default(&rest),
            "mirroring_add" => {
                let replicas = vec![Replica {
                    port: number(1)? as u16,
                    instance: 0,
                }];
                let session = CloneSession {
                    id: number(0)? as u32,
                    replicas,
                    class_of_service: 0,
                    packet_length: 0,
                };
                self.switch
                    .clone_insert(&session)
                    .map_err(|e| e.to_string())
            }
            "mc_mgrp_create" => self
                .switch
                .multicast_insert(number(0)? as u32, &[])
                .map_err(|e| e.to_string()),
            "mc_node_create" => {
                let ports = (1..rest.len()).map(|i| number(i).map(|p| p as u16));
                self.nodes
                    .push((number(0)? as u16, ports.collect::<Result<_>>()?));
                Ok(())
            }
            "mc_node_associate" => {
                let group = number(0)? as u32;
                let groups = self.switch.multicast_groups();
                let (_, mut replicas) = groups
                    .into_iter()
                    .find(|(id, _)| *id == group)
                    .ok_or("no such group")?;
                let (instance, ports) = &self.nodes[number(1)? as usize];
                let instance = *instance;
                replicas.extend(ports.iter().map(|&port| Replica { port, instance }));
                self.switch
                    .multicast_modify(group, &replicas)
                    .map_err(|e| e.to_string())
            }
            "wait" => Ok(()),
            other => Err(format!("unknown command {other}")),
        }
    }

    fn packet(&mut self, port: u16, hex: &str) -> Result<()> {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16))
            .collect::<std::result::Result<_, _>>()
            .map_err(|e| e.to_string())?;
        self.now += 1_000_000;
        self.switch.ingress(port, &bytes, self.now);
        let mut ready = Vec::new();
        for _ in 0..1000 {
            self.switch.take_ready(&mut ready);
            if ready.is_empty() {
                return Ok(());
            }
            for &port in &ready {
                while let Some(packet) = self.switch.dequeue(port, self.now) {
                    let hex: String = packet.bytes.iter().map(|b| format!("{b:02X}")).collect();
                    // A packet without bytes is on no wire.
                    if !hex.is_empty() {
                        self.sent.entry(port).or_default().push(hex);
                    }
                    self.switch.recycle(packet);
                }
            }
        }
        Err("packets go round without end".to_owned())
    }

    /// `add TABLE [PRIORITY] KEY:VALUE... ACTION(PARAM:VALUE, ...)`
    fn add(&mut self, rest: &[&str]) -> Result<()> {
        let table = self.table(rest[0])?;
        let line = rest[1..].join(" ");
        let (before, args) = line.split_once('(').ok_or("no action")?;
        let mut words: Vec<&str> = before.split_whitespace().collect();
        let action = words.pop().ok_or("no action")?;
        let priority = match words.first().and_then(|w| w.parse::<i32>().ok()) {
            Some(priority) => {
                words.remove(0);
                Some(priority)
            }
            None => None,
        };
        let info = self.program().tables()[table.index()].clone();
        let mut key = Vec::new();
        for field in &info.keys {
            let value = words.iter().find_map(|w| {
                let (name, value) = w.split_once(':')?;
                let name = stack_name(name);
                let same = field.name == name || field.name.ends_with(&format!(".{name}"));
                same.then_some(value)
            });
            key.push(match_field(field.kind, field.width, value)?);
        }
        let call = self.call(table, action, args)?;
        let entry = TableEntry {
            key,
            // The format has priority 0 too; the switch begins with 1.
            priority: match info.has_priority {
                true => priority.unwrap_or(0) + 1,
                false => 0,
            },
            action: EntryAction::Call(call),
            idle_timeout: 0,
            metadata: Vec::new(),
        };
        self.switch
            .table_insert(table, &entry, self.now)
            .map_err(|e| e.to_string())?;
        Ok(())
    }

    fn set_default(&mut self, rest: &[&str]) -> Result<()> {
        let table = self.table(rest[0])?;
        let line = rest[1..].join(" ");
        let (action, args) = line.split_once('(').ok_or("no action")?;
        let call = self.call(table, action.trim(), args)?;
        self.switch
            .set_default_action(table, &EntryAction::Call(call))
            .map_err(|e| e.to_string())
    }

    fn program(&self) -> Arc<Program> {
        self.switch
            .program()
            .expect("a program is installed")
            .clone()
    }

    fn table(&self, name: &str) -> Result<TableId> {
        let program = self.program();
        let full = program
            .tables()
            .iter()
            .find(|t| t.name == name || t.name.ends_with(&format!(".{name}")));
        let full = full.ok_or_else(|| format!("no table {name}"))?;
        program.table_id(&full.name).map_err(|e| e.to_string())
    }

    fn call(&self, table: TableId, name: &str, args: &str) -> Result<ActionCall> {
        let program = self.program();
        let info = &program.tables()[table.index()];
        let id = info.actions.iter().find(|id| {
            let full = &program.actions()[id.index()].name;
            *full == name || full.ends_with(&format!(".{name}"))
        });
        let action = *id.ok_or_else(|| format!("no action {name}"))?;
        let given: Vec<(&str, &str)> = args
            .trim_end_matches(')')
            .split(',')
            .filter_map(|arg| arg.trim().split_once(':'))
            .collect();
        let params = program.actions()[action.index()]
            .params
            .iter()
            .map(|param| {
                let (_, value) = given
                    .iter()
                    .find(|(n, _)| *n == param.name)
                    .ok_or("a missing argument")?;
                number(value)
            })
            .collect::<Result<_>>()?;
        Ok(ActionCall { action, params })
    }

    fn compare(&self) -> Result<()> {
        let ports: HashSet<u16> = self
            .sent
            .keys()
            .chain(self.expected.keys())
            .copied()
            .collect();
        let mut ports: Vec<u16> = ports.into_iter().collect();
        ports.sort_unstable();
        for port in ports {
            let sent = self.sent.get(&port).cloned().unwrap_or_default();
            let wanted = match self.expected.get(&port) {
                Some(None) => continue,
                Some(Some(list)) => list.clone(),
                None => Vec::new(),
            };
            if sent.len() != wanted.len() {
                return Err(format!(
                    "port {port}: {} packets, not {}: {sent:?}, expected {wanted:?}",
                    sent.len(),
                    wanted.len()
                ));
            }
            for (sent, wanted) in sent.iter().zip(&wanted) {
                if !matches(sent, wanted) {
                    return Err(format!("port {port}: {sent} is not {wanted}"));
                }
            }
        }
        Ok(())
    }
}

/// The format writes `extra$0.h` for `extra[0].h`.
fn stack_name(name: &str) -> String {
    match name.split_once('$') {
        Some((stack, rest)) => {
            let (index, field) = rest.split_once('.').unwrap_or((rest, ""));
            format!("{stack}[{index}].{field}")
        }
        None => name.to_owned(),
    }
}

/// `*` stands for any digit; without `$` at the end more may follow.
fn matches(sent: &str, wanted: &str) -> bool {
    let (wanted, exact) = match wanted.strip_suffix('$') {
        Some(wanted) => (wanted, true),
        None => (wanted, false),
    };
    let fits = match exact {
        true => sent.len() == wanted.len(),
        false => sent.len() >= wanted.len(),
    };
    fits && sent
        .chars()
        .zip(wanted.chars())
        .all(|(s, w)| w == '*' || s == w)
}

fn number(text: &str) -> Result<Value> {
    let text = text.trim();
    let parse =
        |digits: &str, radix| u128::from_str_radix(digits, radix).map_err(|e| e.to_string());
    let number = if let Some(hex) = text.strip_prefix("0x") {
        parse(hex, 16)?
    } else if let Some(binary) = text.strip_prefix("0b") {
        parse(binary, 2)?
    } else {
        parse(text, 10)?
    };
    Ok(Value::new(number))
}

fn match_field(kind: MatchKind, width: u32, text: Option<&str>) -> Result<MatchField> {
    match (kind, text) {
        (MatchKind::Exact, Some(text)) => Ok(MatchField::Exact(number(text)?)),
        (MatchKind::Lpm, Some(text)) => {
            let (value, prefix_len) = match text.split_once('/') {
                Some((value, length)) => (
                    number(value)?,
                    length.parse().map_err(|_| "bad prefix length")?,
                ),
                None => (number(text)?, width),
            };
            Ok(MatchField::Lpm { value, prefix_len })
        }
        (MatchKind::Ternary, Some(text)) => {
            if let Some((value, mask)) = text.split_once("&&&") {
                return Ok(MatchField::Ternary {
                    value: number(value)?,
                    mask: number(mask)?,
                });
            }
            let digits = text
                .strip_prefix("0x")
                .ok_or("a ternary value is not hexadecimal")?;
            let value = number(&format!("0x{}", digits.replace('*', "0")))?;
            let mask: String = digits
                .chars()
                .map(|c| if c == '*' { '0' } else { 'f' })
                .collect();
            let mask = number(&format!("0x{mask}"))?;
            let all = u128::MAX >> (128 - width);
            let mask = Value::new(mask.as_u128().unwrap_or(0) & all);
            Ok(MatchField::Ternary { value, mask })
        }
        (MatchKind::Ternary, None) => Ok(MatchField::Ternary {
            value: Value::ZERO,
            mask: Value::ZERO,
        }),
        (kind, _) => Err(format!("a {kind:?} key without value")),
    }
}
