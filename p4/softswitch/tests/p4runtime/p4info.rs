//! What P4Info must be, on its own and beside the device config.

use p4runtime::config::v1::{self as config, P4Info};
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;

use super::common::{Bench, pipeline};

/// The words of the refusal of a changed P4Info.
async fn refusal(change: impl FnOnce(&mut P4Info)) -> String {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut config = pipeline(1);
    change(config.p4info.as_mut().unwrap());
    let error = one.push(Action::Verify, Some(config)).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::InvalidArgument, "{error:?}");
    error.message().to_owned()
}

fn named<'a>(info: &'a mut P4Info, alias: &str) -> &'a mut config::Table {
    let mut tables = info.tables.iter_mut();
    tables
        .find(|t| t.preamble.as_ref().unwrap().alias == alias)
        .unwrap()
}

fn profile<'a>(info: &'a mut P4Info, alias: &str) -> &'a mut config::ActionProfile {
    let mut profiles = info.action_profiles.iter_mut();
    profiles
        .find(|t| t.preamble.as_ref().unwrap().alias == alias)
        .unwrap()
}

#[tokio::test]
async fn everything_that_a_controller_fills_is_there() {
    assert!(refusal(|i| *i = P4Info::default()).await.contains("lacks"));
    let words = refusal(|i| {
        i.tables
            .retain(|t| !t.match_fields.is_empty() && t.size != 8)
    })
    .await;
    assert!(words.contains("Pipe.l2"), "{words}");
}

#[tokio::test]
async fn ids_are_set_unique_and_of_their_kind() {
    let words = refusal(|i| i.actions[0].preamble = None).await;
    assert!(words.contains("without an id"), "{words}");
    let words = refusal(|i| i.counters[0].preamble.as_mut().unwrap().id = 0x0200_0001).await;
    assert!(words.contains("0x12"), "{words}");
    refusal(|i| i.registers[0].preamble.as_mut().unwrap().name.clear()).await;
    refusal(|i| named(i, "acl").match_fields[1].id = 1).await;
    refusal(|i| named(i, "acl").match_fields[1].id = 0).await;
    refusal(|i| {
        let refs = &mut named(i, "acl").action_refs;
        refs.push(refs[0].clone());
    })
    .await;
    refusal(|i| {
        let action = i.actions.iter_mut().find(|a| !a.params.is_empty());
        let params = &mut action.unwrap().params;
        params.push(params[0].clone());
    })
    .await;
    refusal(|i| i.controller_packet_metadata[0].metadata[1].id = 1).await;
    refusal(|i| {
        let again = i.controller_packet_metadata[0].clone();
        i.controller_packet_metadata.push(again);
    })
    .await;
}

#[tokio::test]
async fn references_lead_somewhere() {
    refusal(|i| named(i, "l2").action_refs[0].id = 0x01ff_ffff).await;
    refusal(|i| named(i, "l2").const_default_action_id = 0x01ff_ffff).await;
    refusal(|i| named(i, "groups").implementation_id = 0x11ff_ffff).await;
    refusal(|i| named(i, "groups").implementation_id = 0).await;
    let spread = |i: &mut P4Info| profile(i, "spread").preamble.as_ref().unwrap().id;
    refusal(|i| named(i, "l2").implementation_id = spread(i)).await;
    refusal(|i| named(i, "acl").direct_resource_ids[0] = 0x13ff_ffff).await;
    refusal(|i| i.direct_counters[0].direct_table_id = 1).await;
    refusal(|i| profile(i, "spread").table_ids.push(1)).await;
    refusal(|i| i.digests[0].type_spec = None).await;
}

#[tokio::test]
async fn sizes_are_those_of_the_program() {
    refusal(|i| named(i, "l2").size = -1).await;
    refusal(|i| i.counters[0].size = -1).await;
    refusal(|i| i.counters[0].size += 1).await;
    refusal(|i| i.meters[0].size += 1).await;
    refusal(|i| i.registers[0].size += 1).await;
    refusal(|i| i.value_sets[0].size = -1).await;
}

#[tokio::test]
async fn action_profiles_make_sense() {
    refusal(|i| profile(i, "spread").with_selector = false).await;
    refusal(|i| profile(i, "fixed").with_selector = true).await;
    refusal(|i| profile(i, "spread").max_group_size = 65).await;
    refusal(|i| profile(i, "spread").max_group_size = -1).await;
    refusal(|i| profile(i, "fixed").max_group_size = 1).await;
    refusal(|i| profile(i, "fixed").weights_disallowed = true).await;
    refusal(|i| {
        use config::action_profile::{SelectorSizeSemantics, SumOfWeights};
        profile(i, "fixed").selector_size_semantics =
            Some(SelectorSizeSemantics::SumOfWeights(SumOfWeights::default()));
    })
    .await;
}

#[tokio::test]
async fn kinds_agree() {
    use config::match_field::{Match, MatchType};
    let lpm = Some(Match::MatchType(MatchType::Lpm as i32));
    refusal(|i| named(i, "l2").match_fields[0].r#match = lpm).await;
    let other = Some(Match::OtherMatchType("custom".into()));
    refusal(|i| named(i, "l2").match_fields[0].r#match = other).await;
    refusal(|i| named(i, "l2").match_fields[0].r#match = None).await;
    refusal(|i| {
        named(i, "l2").match_fields.pop();
    })
    .await;
    refusal(|i| i.value_sets[0].r#match[0].bitwidth = 8).await;
}

#[tokio::test]
async fn platforms_are_checked() {
    let wants = |groups, total, each| {
        move |i: &mut P4Info| {
            i.pkg_info.get_or_insert_default().platform_properties =
                Some(config::PlatformProperties {
                    multicast_group_table_size: groups,
                    multicast_group_table_total_replicas: total,
                    multicast_group_table_max_replicas_per_entry: each,
                });
        }
    };
    refusal(wants(70_000, 0, 0)).await;
    refusal(wants(1, i32::MAX, 0)).await;
    refusal(wants(1, 10, 11)).await;
    refusal(wants(-1, 0, 0)).await;
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut config = pipeline(1);
    wants(1000, 64_000, 64)(config.p4info.as_mut().unwrap());
    one.push(Action::VerifyAndCommit, Some(config))
        .await
        .unwrap();
}

#[tokio::test]
async fn externs_are_not_there() {
    refusal(|i| {
        i.externs.push(config::Extern {
            extern_type_id: 0x81,
            extern_type_name: "Thing".into(),
            ..Default::default()
        });
    })
    .await;
}

#[tokio::test]
async fn the_older_form_of_device_configs_is_read() {
    use prost::Message as _;
    #[derive(Clone, PartialEq, prost::Message)]
    struct DeviceConfig {
        #[prost(bool, tag = "1")]
        reassign: bool,
        #[prost(bytes = "vec", tag = "3")]
        device_data: Vec<u8>,
    }
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut config = pipeline(1);
    let wrapped = DeviceConfig {
        reassign: true,
        device_data: config.p4_device_config,
    };
    config.p4_device_config = wrapped.encode_to_vec();
    one.push(Action::VerifyAndCommit, Some(config))
        .await
        .unwrap();
}
