//! Parser value sets, and how digests are sent.

use std::collections::HashSet;

use p4runtime::rpc::Code;
use p4runtime::v1;

use super::{Op, Writer, only_modify};
use crate::control::ValueSetMember;
use crate::server::digests::DigestConfig;
use crate::server::entries::decode_fields;
use crate::server::fault::Fault;
use crate::server::pipeline::find;

impl Writer<'_> {
    pub(super) fn value_set(&mut self, op: Op, entry: &v1::ValueSetEntry) -> Result<(), Fault> {
        let pipeline = self.pipeline;
        let set = find(&pipeline.value_sets, entry.value_set_id, "value set")?;
        self.author.scope.check_id(entry.value_set_id)?;
        only_modify(op, &set.name)?;
        if set.size > 0 && entry.members.len() > set.size {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!(
                    "{} holds {} members, not {}",
                    set.name,
                    set.size,
                    entry.members.len()
                ),
            ));
        }
        let mut seen = HashSet::new();
        let members = entry.members.iter().map(|m| {
            let member = ValueSetMember {
                fields: decode_fields(&set.name, &set.fields, &m.r#match)?,
            };
            if !seen.insert(member.clone()) {
                return Err(Fault::new(
                    Code::AlreadyExists,
                    format!("{}: a member is given twice", set.name),
                ));
            }
            Ok(member)
        });
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let id = set.core;
        let old = self.switch.value_set(id)?;
        self.switch.set_value_set(id, &members)?;
        self.on_undo(move |switch, _| switch.set_value_set(id, &old));
        Ok(())
    }

    pub(super) fn digest(&mut self, op: Op, entry: &v1::DigestEntry) -> Result<(), Fault> {
        let id = entry.digest_id;
        find(&self.pipeline.digests, id, "digest")?;
        self.author.scope.check_id(id)?;
        let missing = || Fault::not_found(format!("digest {id:#x} is not enabled"));
        let old = self.state.digests.config(id);
        let limit = self.author.limits.digest_messages;
        match op {
            Op::Delete => {
                let old = self.state.digests.remove(id).ok_or_else(missing)?;
                self.on_undo(move |_, state| {
                    state.digests.insert(id, old, limit);
                    Ok(())
                });
            }
            Op::Insert => {
                if !self.state.digests.insert(id, decode_config(entry)?, limit) {
                    return Err(Fault::new(
                        Code::AlreadyExists,
                        format!("digest {id:#x} is enabled already"),
                    ));
                }
                self.on_undo(move |_, state| {
                    state.digests.remove(id);
                    Ok(())
                });
            }
            Op::Modify => {
                let old = old.ok_or_else(missing)?;
                self.state.digests.modify(id, decode_config(entry)?);
                self.on_undo(move |_, state| {
                    state.digests.modify(id, old);
                    Ok(())
                });
            }
        }
        Ok(())
    }
}

fn decode_config(entry: &v1::DigestEntry) -> Result<DigestConfig, Fault> {
    let config = entry.config.unwrap_or_default();
    let negative = |_| Fault::invalid("a digest's timeouts and list size cannot be negative");
    Ok(DigestConfig {
        max_timeout_ns: u64::try_from(config.max_timeout_ns).map_err(negative)?,
        max_list_size: usize::try_from(config.max_list_size).map_err(negative)?,
        ack_timeout_ns: u64::try_from(config.ack_timeout_ns).map_err(negative)?,
    })
}
