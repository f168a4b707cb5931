//! What a role may do.
//!
//! P4Runtime leaves the form of `Role.config` to client and server. This server takes an unset
//! config as full access, and otherwise one of two messages, by the name at the end of the type
//! URL: its own [`RoleConfig`], or `stratum.P4RoleConfig`, which is what clients that know roles
//! send to other switches ([`StratumRoleConfig`]). Anything else is refused.

use p4runtime::bytes::canonical;
use p4runtime::v1::PacketMetadata;
use prost::Message as _;

use super::arbitration::RoleConfig as Packed;
use super::fault::Fault;

/// The type URL of a [`RoleConfig`] in `Role.config`.
pub const ROLE_CONFIG_TYPE_URL: &str = "type.googleapis.com/meridian.p4.v1.RoleConfig";

/// The type URL of a [`StratumRoleConfig`] in `Role.config`.
pub const STRATUM_ROLE_CONFIG_TYPE_URL: &str = "type.googleapis.com/stratum.P4RoleConfig";

/// A value that a controller packet's metadata must have.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PacketFilter {
    /// The metadata's id in P4Info.
    #[prost(uint32, tag = "1")]
    pub metadata_id: u32,
    /// Its value, as a byte string of P4Runtime.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

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
    /// The packet-ins that the role receives: for every metadata id named here, those that have
    /// one of the values given with it. Empty for all.
    #[prost(message, repeated, tag = "6")]
    pub packet_in_filter: Vec<PacketFilter>,
    /// The packet-outs that the role may send, likewise.
    #[prost(message, repeated, tag = "7")]
    pub packet_out_filter: Vec<PacketFilter>,
    /// Ids as in `p4_ids` that no other role's config may name while this role has clients.
    #[prost(uint32, repeated, tag = "8")]
    pub exclusive_p4_ids: Vec<u32>,
}

/// Message `stratum.P4RoleConfig`. It says nothing of packet-outs and of the packet replication
/// engine: a role that has it may send and write these.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StratumRoleConfig {
    /// Ids that this role alone may write.
    #[prost(uint32, repeated, tag = "1")]
    pub exclusive_p4_ids: Vec<u32>,
    /// Ids that this role may write, and others too.
    #[prost(uint32, repeated, tag = "2")]
    pub shared_p4_ids: Vec<u32>,
    /// The packet-ins that the role receives; unset for all.
    #[prost(message, optional, tag = "3")]
    pub packet_in_filter: Option<PacketFilter>,
    /// Whether the role receives packet-ins.
    #[prost(bool, tag = "4")]
    pub receives_packet_ins: bool,
    /// Whether the role may set the forwarding pipeline.
    #[prost(bool, tag = "5")]
    pub can_push_pipeline: bool,
}

impl From<StratumRoleConfig> for RoleConfig {
    fn from(config: StratumRoleConfig) -> Self {
        RoleConfig {
            p4_ids: config.shared_p4_ids,
            packet_in: config.receives_packet_ins,
            packet_out: true,
            pipeline: config.can_push_pipeline,
            replication: true,
            packet_in_filter: config.packet_in_filter.into_iter().collect(),
            packet_out_filter: Vec::new(),
            exclusive_p4_ids: config.exclusive_p4_ids,
        }
    }
}

/// What a role may do; by default everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope(Option<RoleConfig>);

impl Scope {
    /// Reads `Role.config`.
    ///
    /// # Errors
    /// `InvalidArgument` for a config of another type, or one that does not decode or
    /// contradicts itself.
    pub(crate) fn of(config: Option<&Packed>) -> Result<Self, Fault> {
        let Some(config) = config else {
            return Ok(Scope(None));
        };
        let name = |url: &str| url.rsplit('/').next().map(str::to_owned);
        let given = name(&config.type_url);
        let decoded = if given == name(ROLE_CONFIG_TYPE_URL) {
            RoleConfig::decode(&config.value[..])
        } else if given == name(STRATUM_ROLE_CONFIG_TYPE_URL) {
            StratumRoleConfig::decode(&config.value[..]).map(RoleConfig::from)
        } else {
            return Err(Fault::invalid(format!(
                "role.config has type {:?}; this server takes {ROLE_CONFIG_TYPE_URL:?} and \
                 {STRATUM_ROLE_CONFIG_TYPE_URL:?}, or none for full access",
                config.type_url
            )));
        };
        let mut decoded = decoded
            .map_err(|error| Fault::invalid(format!("role.config does not decode: {error}")))?;
        check_filters(
            &mut decoded.packet_in_filter,
            decoded.packet_in,
            "packet_in",
        )?;
        check_filters(
            &mut decoded.packet_out_filter,
            decoded.packet_out,
            "packet_out",
        )?;
        Ok(Scope(Some(decoded)))
    }

    /// An id that this role or the other has for itself, and both name.
    pub(crate) fn conflict(&self, other: &Scope) -> Option<u32> {
        let (own, other) = (self.0.as_ref()?, other.0.as_ref()?);
        let claims = |a: &RoleConfig, b: &RoleConfig| {
            let mut ids = a.exclusive_p4_ids.iter().copied();
            ids.find(|id| b.names(*id))
        };
        claims(own, other).or_else(|| claims(other, own))
    }

    /// May the role write what has this P4Info id?
    pub(crate) fn check_id(&self, id: u32) -> Result<(), Fault> {
        match &self.0 {
            Some(config) if !config.names(id) => Err(Fault::denied(format!(
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

    /// May the role send this packet-out?
    pub(crate) fn check_packet_out(&self, metadata: &[PacketMetadata]) -> Result<(), Fault> {
        self.check(|c| c.packet_out, "packet-outs")?;
        let passes = |c: &RoleConfig| passes(&c.packet_out_filter, metadata);
        self.check(passes, "packet-outs with this metadata")
    }

    /// Does the role receive a packet-in with this metadata?
    pub(crate) fn receives_packet_in(&self, metadata: &[PacketMetadata]) -> bool {
        let receives = |c: &RoleConfig| c.packet_in && passes(&c.packet_in_filter, metadata);
        self.0.as_ref().is_none_or(receives)
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

impl RoleConfig {
    fn names(&self, id: u32) -> bool {
        self.p4_ids.contains(&id) || self.exclusive_p4_ids.contains(&id)
    }
}

/// Filters are of packets that the role has at all, and say a value, which is brought into its
/// shortest form.
fn check_filters(filters: &mut [PacketFilter], packets: bool, what: &str) -> Result<(), Fault> {
    if !packets && !filters.is_empty() {
        return Err(Fault::invalid(format!(
            "role.config filters {what} packets, which it does not include"
        )));
    }
    for filter in filters {
        if filter.metadata_id == 0 || filter.value.is_empty() {
            return Err(Fault::invalid(format!(
                "role.config has a {what} filter without metadata_id or value"
            )));
        }
        filter.value = canonical(&filter.value);
    }
    Ok(())
}

/// Whether a packet has, for every metadata id that filters name, one of its values.
fn passes(filters: &[PacketFilter], metadata: &[PacketMetadata]) -> bool {
    filters.iter().all(|named| {
        let given = metadata
            .iter()
            .find(|m| m.metadata_id == named.metadata_id)
            .map(|m| canonical(&m.value));
        let mut values = filters
            .iter()
            .filter(|f| f.metadata_id == named.metadata_id);
        values.any(|f| given.as_ref() == Some(&f.value))
    })
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
        scope.check_packet_out(&[]).unwrap();
        assert!(scope.receives_packet_in(&[]));
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
        assert!(scope.check_packet_out(&[]).is_err());
        assert!(scope.receives_packet_in(&[]));
    }

    fn packed(url: &str, config: &impl prost::Message) -> Packed {
        Packed {
            type_url: url.into(),
            value: config.encode_to_vec(),
        }
    }

    fn filter(metadata_id: u32, value: &[u8]) -> PacketFilter {
        PacketFilter {
            metadata_id,
            value: value.into(),
        }
    }

    fn metadata(metadata_id: u32, value: &[u8]) -> PacketMetadata {
        PacketMetadata {
            metadata_id,
            value: value.into(),
        }
    }

    #[test]
    fn packets_are_filtered_by_their_metadata() {
        let filters = vec![filter(1, &[0, 5]), filter(1, &[6]), filter(2, &[0])];
        let config = RoleConfig {
            packet_in: true,
            packet_out: true,
            packet_in_filter: filters.clone(),
            packet_out_filter: filters,
            ..RoleConfig::default()
        };
        let scope = Scope::of(Some(&packed(ROLE_CONFIG_TYPE_URL, &config))).unwrap();
        let both = |one: &[u8], two: &[u8]| [metadata(2, two), metadata(1, one), metadata(3, &[9])];
        for (one, two, passes) in [(5, 0, true), (6, 0, true), (7, 0, false), (5, 1, false)] {
            let given = both(&[one], &[two]);
            assert_eq!(scope.receives_packet_in(&given), passes, "{one} {two}");
            assert_eq!(
                scope.check_packet_out(&given).is_ok(),
                passes,
                "{one} {two}"
            );
        }
        assert!(scope.receives_packet_in(&both(&[0, 0, 6], &[0])), "zeros");
        assert!(!scope.receives_packet_in(&[metadata(1, &[5])]), "no value");
    }

    #[test]
    fn filters_make_sense() {
        for (packet_in, bad) in [
            (false, filter(1, &[1])),
            (true, filter(1, &[])),
            (true, filter(0, &[1])),
        ] {
            let config = RoleConfig {
                packet_in,
                packet_in_filter: vec![bad],
                ..RoleConfig::default()
            };
            Scope::of(Some(&packed(ROLE_CONFIG_TYPE_URL, &config))).unwrap_err();
        }
    }

    #[test]
    fn configs_in_the_other_form() {
        let config = StratumRoleConfig {
            exclusive_p4_ids: vec![7],
            shared_p4_ids: vec![8],
            packet_in_filter: Some(filter(1, &[5])),
            receives_packet_ins: true,
            can_push_pipeline: false,
        };
        let scope = Scope::of(Some(&packed(STRATUM_ROLE_CONFIG_TYPE_URL, &config))).unwrap();
        scope.check_id(7).unwrap();
        scope.check_id(8).unwrap();
        scope.check_id(9).unwrap_err();
        scope.check_pipeline().unwrap_err();
        scope.check_replication().unwrap();
        scope.check_packet_out(&[]).unwrap();
        assert!(scope.receives_packet_in(&[metadata(1, &[5])]));
        assert!(!scope.receives_packet_in(&[metadata(1, &[6])]));
        // Nobody else may name what one has for itself.
        let other = |shared, exclusive| {
            let config = StratumRoleConfig {
                shared_p4_ids: shared,
                exclusive_p4_ids: exclusive,
                ..StratumRoleConfig::default()
            };
            Scope::of(Some(&packed(STRATUM_ROLE_CONFIG_TYPE_URL, &config))).unwrap()
        };
        assert_eq!(scope.conflict(&other(vec![8, 9], vec![10])), None);
        assert_eq!(scope.conflict(&other(vec![7], vec![])), Some(7));
        assert_eq!(scope.conflict(&other(vec![], vec![8])), Some(8));
        assert_eq!(scope.conflict(&Scope::default()), None, "full access");
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
