//! What a role may do.
//!
//! P4Runtime leaves the form of `Role.config` to client and server. This server takes an unset
//! config as full access, and otherwise a [`RoleConfig`] under the type URL
//! [`ROLE_CONFIG_TYPE_URL`]; anything else is refused.

use prost::Message as _;

use super::arbitration::RoleConfig as Packed;
use super::fault::Fault;

/// The type URL of a [`RoleConfig`] in `Role.config`.
pub const ROLE_CONFIG_TYPE_URL: &str = "type.googleapis.com/meridian.p4.v1.RoleConfig";

/// The scope of a role: message `meridian.p4.v1.RoleConfig`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RoleConfig {
    /// P4Info ids of the tables, action profiles, counters, meters, registers, value sets and
    /// digests that the role may write. Direct counters and meters go with their table.
    #[prost(uint32, repeated, tag = "1")]
    pub p4_ids: Vec<u32>,
    /// Whether the role receives packet-ins.
    #[prost(bool, tag = "2")]
    pub packet_in: bool,
    /// Whether the role may send packet-outs.
    #[prost(bool, tag = "3")]
    pub packet_out: bool,
    /// Whether the role may set the forwarding pipeline.
    #[prost(bool, tag = "4")]
    pub pipeline: bool,
    /// Whether the role may write multicast groups and clone sessions.
    #[prost(bool, tag = "5")]
    pub replication: bool,
}

/// What a role may do; by default everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope(Option<RoleConfig>);

impl Scope {
    /// Reads `Role.config`.
    ///
    /// # Errors
    /// `InvalidArgument` for a config of another type, or one that does not decode.
    pub(crate) fn of(config: Option<&Packed>) -> Result<Self, Fault> {
        let Some(config) = config else {
            return Ok(Scope(None));
        };
        if config.type_url != ROLE_CONFIG_TYPE_URL {
            return Err(Fault::invalid(format!(
                "role.config has type {:?}; this server takes {ROLE_CONFIG_TYPE_URL:?}, or none \
                 for full access",
                config.type_url
            )));
        }
        match RoleConfig::decode(&config.value[..]) {
            Ok(decoded) => Ok(Scope(Some(decoded))),
            Err(error) => Err(Fault::invalid(format!(
                "role.config does not decode: {error}"
            ))),
        }
    }

    /// May the role write what has this P4Info id?
    pub(crate) fn check_id(&self, id: u32) -> Result<(), Fault> {
        match &self.0 {
            Some(config) if !config.p4_ids.contains(&id) => Err(Fault::denied(format!(
                "the role's config does not include id {id:#x}"
            ))),
            _ => Ok(()),
        }
    }

    /// May the role write multicast groups and clone sessions?
    pub(crate) fn check_replication(&self) -> Result<(), Fault> {
        self.check(|c| c.replication, "multicast groups and clone sessions")
    }

    /// May the role set the pipeline?
    pub(crate) fn check_pipeline(&self) -> Result<(), Fault> {
        self.check(|c| c.pipeline, "the forwarding pipeline")
    }

    /// May the role send packet-outs?
    pub(crate) fn check_packet_out(&self) -> Result<(), Fault> {
        self.check(|c| c.packet_out, "packet-outs")
    }

    /// Does the role receive packet-ins?
    pub(crate) fn receives_packet_ins(&self) -> bool {
        self.0.as_ref().is_none_or(|c| c.packet_in)
    }

    /// Does the role hear of what has this P4Info id (digests, idle timeouts)?
    pub(crate) fn includes(&self, id: u32) -> bool {
        self.check_id(id).is_ok()
    }

    fn check(&self, allowed: impl Fn(&RoleConfig) -> bool, what: &str) -> Result<(), Fault> {
        match &self.0 {
            Some(config) if !allowed(config) => Err(Fault::denied(format!(
                "the role's config does not include {what}"
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn no_config_is_full_access() {
        let scope = Scope::of(None).unwrap();
        scope.check_id(1).unwrap();
        scope.check_pipeline().unwrap();
        scope.check_replication().unwrap();
        scope.check_packet_out().unwrap();
        assert!(scope.receives_packet_ins());
    }

    #[test]
    fn config_limits() {
        let config = RoleConfig {
            p4_ids: vec![7],
            packet_in: true,
            ..RoleConfig::default()
        };
        let packed = Packed {
            type_url: ROLE_CONFIG_TYPE_URL.into(),
            value: config.encode_to_vec(),
        };
        let scope = Scope::of(Some(&packed)).unwrap();
        scope.check_id(7).unwrap();
        assert!(scope.check_id(8).is_err());
        assert!(scope.check_pipeline().is_err());
        assert!(scope.check_replication().is_err());
        assert!(scope.check_packet_out().is_err());
        assert!(scope.receives_packet_ins());
    }

    #[test]
    fn other_configs_are_refused() {
        let packed = |url: &str, value: &[u8]| Packed {
            type_url: url.into(),
            value: value.into(),
        };
        assert!(Scope::of(Some(&packed("type.googleapis.com/x.Y", &[]))).is_err());
        assert!(Scope::of(Some(&packed(ROLE_CONFIG_TYPE_URL, &[0xff]))).is_err());
    }
}
