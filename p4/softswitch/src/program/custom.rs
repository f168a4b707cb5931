//! The hash calculations whose parameters are the control plane's.

use sonic_rs::JsonValueTrait;

use super::calc::Calculation;
use super::info::{CustomHashInfo, ProfileInfo};
use super::{Parts, place, raw};
use crate::hash::Algorithm;

/// Numbers the custom CRCs of a program and describes them in that order.
pub(super) fn number(
    root: &raw::Root,
    profiles: &[ProfileInfo],
    parts: &mut Parts,
) -> Vec<CustomHashInfo> {
    let mut found = Vec::new();
    let mut look = |name: &str, source: Option<String>, calculation: &mut Calculation| {
        if let Algorithm::CustomCrc(bits) = calculation.algorithm {
            calculation.custom = Some(found.len() as u16);
            found.push(CustomHashInfo {
                name: name.to_owned(),
                bits,
                source: source.unwrap_or_default(),
            });
        }
    };
    for (raw, calculation) in root.calculations.iter().zip(&mut parts.calculations) {
        look(&raw.name, source(root, &raw.name), calculation);
    }
    for (profile, calculation) in profiles.iter().zip(&mut parts.selectors) {
        if let Some(calculation) = calculation {
            look(&profile.name, None, calculation);
        }
    }
    found
}

/// The statement that a calculation is for.
fn source(root: &raw::Root, calculation: &str) -> Option<String> {
    let uses = |call: &&raw::Call| {
        let mut parameters = call.parameters.iter();
        parameters.any(|p| {
            let field = |name| p.get(name).and_then(|v| v.as_str());
            field("type") == Some("calculation") && field("value") == Some(calculation)
        })
    };
    let mut calls = root.actions.iter().flat_map(|a| &a.primitives);
    place::source(calls.find(uses)?.source_info.as_ref())
}
