//! Forwarding pipelines: setting, saving, committing, reconciling, getting.
use super::common::{Bench, Controller, DEVICE, does, id, l2, pipeline};
use p4runtime::v1::{
    self, entity::Entity, get_forwarding_pipeline_config_request::ResponseType,
    set_forwarding_pipeline_config_request::Action,
};

async fn get(
    controller: &mut Controller,
    response: ResponseType,
) -> Option<v1::ForwardingPipelineConfig> {
    let request = v1::GetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        response_type: response as i32,
    };
    let answer = controller
        .client
        .get_forwarding_pipeline_config(request)
        .await
        .unwrap();
    answer.into_inner().config
}

fn cookie(config: &v1::ForwardingPipelineConfig) -> Option<u64> {
    config.cookie.as_ref().map(|c| c.cookie)
}

#[tokio::test]
async fn nothing_is_there_before_a_push() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    assert_eq!(get(&mut one, ResponseType::All).await, None);
    let refused = one.write_as(Default::default(), vec![]).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    let (_, _, refused) = one
        .read_all("", vec![Entity::TableEntry(Default::default())])
        .await;
    assert_eq!(refused.unwrap().code(), tonic::Code::FailedPrecondition);
}

#[tokio::test]
async fn get_has_four_response_types() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    for (response, info, device) in [
        (ResponseType::All, true, true),
        (ResponseType::CookieOnly, false, false),
        (ResponseType::P4infoAndCookie, true, false),
        (ResponseType::DeviceConfigAndCookie, false, true),
    ] {
        let config = get(&mut one, response).await.unwrap();
        assert_eq!(cookie(&config), Some(1));
        assert_eq!(config.p4info.is_some(), info, "{response:?}");
        assert_eq!(!config.p4_device_config.is_empty(), device, "{response:?}");
    }
    assert_eq!(get(&mut one, ResponseType::All).await.unwrap(), pipeline(1));
    let wrong = v1::GetForwardingPipelineConfigRequest {
        device_id: 9,
        response_type: 0,
    };
    let refused = one
        .client
        .get_forwarding_pipeline_config(wrong)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn an_unset_cookie_stays_unset() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let config = v1::ForwardingPipelineConfig {
        cookie: None,
        ..pipeline(1)
    };
    one.push(Action::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    assert_eq!(
        cookie(&get(&mut one, ResponseType::CookieOnly).await.unwrap()),
        None
    );
}

#[tokio::test]
async fn verify_changes_nothing() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.insert(Entity::TableEntry(l2(1, 1))).await.unwrap();
    one.push(Action::Verify, Some(pipeline(2))).await.unwrap();
    assert_eq!(
        cookie(&get(&mut one, ResponseType::CookieOnly).await.unwrap()),
        Some(1)
    );
    assert_eq!(one.tables(l2_all()).await.len(), 1);
}

fn l2_all() -> v1::TableEntry {
    v1::TableEntry {
        table_id: id("l2"),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_commit_starts_anew() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.insert(Entity::TableEntry(l2(1, 1))).await.unwrap();
    one.push(Action::VerifyAndCommit, Some(pipeline(2)))
        .await
        .unwrap();
    assert_eq!(
        cookie(&get(&mut one, ResponseType::CookieOnly).await.unwrap()),
        Some(2)
    );
    assert!(one.tables(l2_all()).await.is_empty());
}

#[tokio::test]
async fn bad_configs_say_what_is_wrong() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    let mut check = async |config: v1::ForwardingPipelineConfig, words: &[&str]| {
        let error = one
            .push(Action::VerifyAndCommit, Some(config))
            .await
            .unwrap_err();
        assert_eq!(error.code(), tonic::Code::InvalidArgument, "{error:?}");
        for word in words {
            assert!(
                error.message().contains(word),
                "{word}: {}",
                error.message()
            );
        }
    };
    let good = pipeline(1);
    check(
        v1::ForwardingPipelineConfig {
            p4info: None,
            ..good.clone()
        },
        &["p4info"],
    )
    .await;
    check(
        v1::ForwardingPipelineConfig {
            p4_device_config: vec![],
            ..good.clone()
        },
        &["p4_device_config", "empty"],
    )
    .await;
    check(
        v1::ForwardingPipelineConfig {
            p4_device_config: b"{ nonsense".to_vec(),
            ..good.clone()
        },
        &["p4_device_config"],
    )
    .await;
    let mut renamed = good.clone();
    let table = &mut renamed.p4info.as_mut().unwrap().tables[0];
    table.preamble.as_mut().unwrap().name = "Pipe.elsewhere".into();
    check(renamed, &["Pipe.elsewhere", "Pipe.l2"]).await;
    let mut widened = good.clone();
    widened.p4info.as_mut().unwrap().tables[0].match_fields[0].bitwidth = 49;
    check(widened, &["49", "48", "hdr.ethernet.dst"]).await;
    let mut twice = good.clone();
    let info = twice.p4info.as_mut().unwrap();
    let first = info.tables[0].preamble.as_ref().unwrap().id;
    info.tables[1].preamble.as_mut().unwrap().id = first;
    check(twice, &["Pipe.l2", "Pipe.known"]).await;
}

#[tokio::test]
async fn actions_want_their_config() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    for action in [
        Action::Verify,
        Action::VerifyAndSave,
        Action::VerifyAndCommit,
        Action::ReconcileAndCommit,
    ] {
        let refused = one.push(action, None).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{action:?}");
    }
    let refused = one
        .push(Action::Unspecified, Some(pipeline(1)))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    let refused = one.push(Action::Commit, None).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
    one.push(Action::VerifyAndSave, Some(pipeline(1)))
        .await
        .unwrap();
    let refused = one
        .push(Action::Commit, Some(pipeline(1)))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
}

#[tokio::test]
async fn saved_configs_take_writes_and_commit_replays_them() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    one.insert(Entity::TableEntry(l2(1, 1))).await.unwrap();
    one.push(Action::VerifyAndSave, Some(pipeline(2)))
        .await
        .unwrap();
    assert!(
        one.tables(l2_all()).await.is_empty(),
        "reads refer to the saved config"
    );
    one.insert(Entity::TableEntry(l2(2, 2))).await.unwrap();
    assert_eq!(one.tables(l2_all()).await.len(), 1);
    {
        // What runs is still the old one.
        let switch = bench.switch.lock();
        let table = switch.program().unwrap().table_id("Pipe.l2").unwrap();
        assert_eq!(switch.table_len(table).unwrap(), 1);
    }
    one.push(Action::Commit, None).await.unwrap();
    assert_eq!(
        cookie(&get(&mut one, ResponseType::CookieOnly).await.unwrap()),
        Some(2)
    );
    let entries = one.tables(l2_all()).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].r#match, l2(2, 2).r#match);
    let refused = one.push(Action::Commit, None).await.unwrap_err();
    assert_eq!(
        refused.code(),
        tonic::Code::NotFound,
        "nothing is saved any more"
    );
}

#[tokio::test]
async fn reconcile_keeps_what_was_written() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let entry = v1::TableEntry {
        metadata: b"mine".to_vec(),
        ..l2(1, 1)
    };
    one.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    let default = v1::TableEntry {
        table_id: id("keyless"),
        is_default_action: true,
        action: does("drop", &[]),
        ..Default::default()
    };
    one.modify(Entity::TableEntry(default.clone()))
        .await
        .unwrap();
    // Another program: the same with a table that has more room.
    let mut config = pipeline(2);
    let json = String::from_utf8(config.p4_device_config).unwrap();
    config.p4_device_config = json
        .replace("\"max_size\" : 8,", "\"max_size\" : 9,")
        .into_bytes();
    assert_ne!(config.p4_device_config, super::common::JSON);
    one.push(Action::ReconcileAndCommit, Some(config))
        .await
        .unwrap();
    assert_eq!(one.tables(l2_all()).await, [entry.clone()]);
    let request = v1::TableEntry {
        is_default_action: true,
        ..v1::TableEntry {
            table_id: id("keyless"),
            ..Default::default()
        }
    };
    assert_eq!(one.tables(request).await[0].action, default.action);
    assert_eq!(
        cookie(&get(&mut one, ResponseType::CookieOnly).await.unwrap()),
        Some(2)
    );

    // A pipeline whose table is another cannot keep its entry.
    let mut smaller = pipeline(3);
    let json = String::from_utf8(smaller.p4_device_config).unwrap();
    smaller.p4_device_config = json.replace("\"Pipe.l2\"", "\"Pipe.l3\"").into_bytes();
    let info = smaller.p4info.as_mut().unwrap();
    for table in &mut info.tables {
        let preamble = table.preamble.as_mut().unwrap();
        if preamble.alias == "l2" {
            preamble.name = "Pipe.l3".into();
            preamble.id += 1;
        }
    }
    let refused = one
        .push(Action::ReconcileAndCommit, Some(smaller.clone()))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert_eq!(
        one.tables(l2_all()).await,
        [entry.clone()],
        "nothing changed"
    );
    one.delete(Entity::TableEntry(entry)).await.unwrap();
    one.push(Action::ReconcileAndCommit, Some(smaller))
        .await
        .unwrap();
}

#[tokio::test]
async fn reconcile_without_a_pipeline_is_a_commit() {
    let bench = Bench::new();
    let mut one = bench.primary(1).await;
    one.push(Action::ReconcileAndCommit, Some(pipeline(4)))
        .await
        .unwrap();
    assert_eq!(
        cookie(&get(&mut one, ResponseType::CookieOnly).await.unwrap()),
        Some(4)
    );
}
