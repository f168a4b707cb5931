//! The `ars:` part of the `policy:` section.

use std::ops::RangeInclusive;

use super::decode::{self, Fields};
use super::report::Findings;
use super::tree::{Kind, Node};
use crate::ars_policy::{ARS_MODES, ArsPolicy};
use crate::policy::Policy;

/// Times that the data plane can count: whole microseconds, up to a second.
const TIMES_NS: RangeInclusive<u64> = 1_000..=1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;

fn is_none(node: &Node<'_>) -> bool {
    matches!(&node.kind, Kind::Scalar(text, _) if text == "none")
}

/// `policy.ars`: what is left out has the defaults; `none` turns it off.
pub(super) fn decode(node: &Node<'_>, policy: &mut Policy, findings: &mut Findings) {
    if is_none(node) {
        policy.ars = None;
        return;
    }
    let known = &["mode", "idle", "hello", "probe", "gray_is_dead"];
    let Some(fields) = Fields::of(node, "`ars`", known, findings) else {
        return;
    };
    let mut ars = ArsPolicy::default();
    if let Some(node) = fields.get("mode")
        && let Some(mode) = decode::choice(node, "mode", &ARS_MODES, findings)
    {
        ars.mode = mode;
    }
    if let Some(idle) = time(&fields, "idle", findings) {
        ars.idle_ns = idle;
    }
    for (name, interval) in [("hello", &mut ars.hello_ns), ("probe", &mut ars.probe_ns)] {
        match fields.get(name) {
            None => {}
            Some(node) if is_none(node) => *interval = None,
            Some(_) => *interval = time(&fields, name, findings).or(*interval),
        }
    }
    if let Some(gray) = fields.opt("gray_is_dead", findings, decode::boolean) {
        ars.gray_is_dead = gray;
    }
    if let (true, None, Some(node)) = (ars.gray_is_dead, ars.hello_ns, fields.get("gray_is_dead")) {
        let help =
            "hellos tell of packets that a link loses: set `hello`, or leave `gray_is_dead` out";
        let message = "`gray_is_dead` without hellos".to_owned();
        findings.add(node.at, "conflict", message, help);
    }
    policy.ars = Some(ars);
}

fn time(fields: &Fields<'_, '_>, name: &str, findings: &mut Findings) -> Option<u64> {
    let found = fields.opt_at(name, findings, decode::delay)?;
    if TIMES_NS.contains(&found.value) && found.value.is_multiple_of(MICROSECOND_NS) {
        return Some(found.value);
    }
    let message = format!("`{name}` is {} ns", found.value);
    let help = "switches count whole microseconds: use 1us to 1s";
    findings.add(found.at, "out-of-range", message, help);
    None
}
