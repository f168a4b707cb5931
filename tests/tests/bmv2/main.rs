//! The fabric pipeline on bmv2's simple_switch_grpc and on meridian-switch: one compiled program,
//! the same entries and packets, the same results.
//!
//! Needs root, and the switch: simple_switch_grpc on PATH, meridian-switch built in the same profile.
//! `cargo test -p tests --test bmv2 -- --ignored`, for one of them with `on_bmv2::` before the `--`.
#![allow(clippy::unwrap_used)]

mod adaptive;
mod differential;
mod entries;
#[allow(
    dead_code,
    reason = "the telemetry tests of the embedded switch use the rest"
)]
#[path = "../int/frames.rs"]
mod frames;
#[allow(
    dead_code,
    reason = "the telemetry tests of the embedded switch use the rest"
)]
#[path = "../int/model.rs"]
mod model;
mod packet;
mod scenarios;
mod switch;
mod telemetry;
mod thrift;
mod traffic;
mod vectors;
mod wire;

/// A test for each scenario, on the target of the module.
macro_rules! scenarios {
    ($target:expr, $reason:literal, $module:ident: $($scenario:ident)*) => {
        $(
            #[test]
            #[ignore = $reason]
            fn $scenario() {
                let test = concat!(module_path!(), "::", stringify!($scenario));
                crate::switch::isolated(test, $target, $module::$scenario);
            }
        )*
    };
}

/// A test for each of the softswitch's test programs that has vectors.
macro_rules! vectors {
    ($target:expr, $reason:literal, $($program:ident)*) => {
        $(
            #[test]
            #[ignore = $reason]
            fn $program() {
                let test = concat!(module_path!(), "::", stringify!($program));
                crate::switch::in_namespaces(test, || {
                    crate::vectors::run($target, stringify!($program));
                });
            }
        )*
    };
}

mod on_bmv2 {
    use crate::{adaptive, scenarios, telemetry};

    vectors! {
        crate::switch::Target::Bmv2, "needs root and simple_switch_grpc",
        paths hashes choice shapes
    }

    scenarios! {
        crate::switch::Target::Bmv2, "needs root and simple_switch_grpc",
        scenarios:
        routes_ipv4_and_ipv6
        spreads_a_group_and_keeps_placed_flows
        punts_what_the_controller_wants_to_see
        sends_packet_outs_untouched_or_routed
        drops_and_counts_by_reason
        marks_by_queue_depth
        cnps_ride_the_control_queue
    }
    scenarios! {
        crate::switch::Target::Bmv2, "needs root and simple_switch_grpc",
        adaptive:
        fixed_groups_go_by_the_hash
        flowlets_stay_together_and_go_by_weight
        packets_go_by_weight
        quality_follows_probes
        no_member_left_is_a_drop_and_no_crash
        a_silent_neighbour_is_left
    }
    scenarios! {
        crate::switch::Target::Bmv2, "needs root and simple_switch_grpc",
        telemetry:
        measures_packets_by_dscp
        measures_packets_by_udp_port
    }
}

mod on_meridian_switch {
    use crate::{adaptive, scenarios, telemetry};

    vectors! {
        crate::switch::Target::MeridianSwitch, "needs root and a built meridian-switch",
        paths hashes choice shapes
    }

    scenarios! {
        crate::switch::Target::MeridianSwitch, "needs root and a built meridian-switch",
        scenarios:
        routes_ipv4_and_ipv6
        spreads_a_group_and_keeps_placed_flows
        punts_what_the_controller_wants_to_see
        sends_packet_outs_untouched_or_routed
        drops_and_counts_by_reason
        cnps_ride_the_control_queue
    }
    scenarios! {
        crate::switch::Target::MeridianSwitch, "needs root and a built meridian-switch",
        adaptive:
        fixed_groups_go_by_the_hash
        flowlets_stay_together_and_go_by_weight
        packets_go_by_weight
        quality_follows_probes
        no_member_left_is_a_drop_and_no_crash
        a_silent_neighbour_is_left
    }
    scenarios! {
        crate::switch::Target::MeridianSwitch, "needs root and a built meridian-switch",
        telemetry:
        measures_packets_by_dscp
        measures_packets_by_udp_port
    }
}
