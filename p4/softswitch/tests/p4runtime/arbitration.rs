//! Arbitration as clients see it, on real streams.
use super::common::{Bench, DEVICE, claim, pipeline};
use p4runtime::rpc::Code;
use p4runtime::v1::{self, set_forwarding_pipeline_config_request::Action};

#[tokio::test]
async fn primary_backup_and_takeover() {
    let bench = Bench::new();
    let mut one = bench.primary(10).await;
    let mut two = bench.connect().await;
    two.claim(claim("", Some(5))).await;
    assert_eq!(two.arbitration().await, (Code::AlreadyExists, Some(10)));
    one.quiet().await;

    two.claim(claim("", Some(11))).await;
    assert_eq!(one.arbitration().await, (Code::AlreadyExists, Some(11)));
    assert_eq!(two.arbitration().await, (Code::Ok, Some(11)));
    let refused = one
        .push(Action::VerifyAndCommit, Some(pipeline(1)))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    two.election_id = Some(11);
    two.push(Action::VerifyAndCommit, Some(pipeline(1)))
        .await
        .unwrap();
}

#[tokio::test]
async fn nobody_is_promoted_when_the_primary_leaves() {
    let bench = Bench::new();
    let one = bench.primary(10).await;
    let mut two = bench.connect().await;
    two.claim(claim("", Some(5))).await;
    two.arbitration().await;
    drop(one);
    assert_eq!(two.arbitration().await, (Code::NotFound, Some(10)));
    two.election_id = Some(5);
    let refused = two
        .push(Action::VerifyAndCommit, Some(pipeline(1)))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
}

#[tokio::test]
async fn streams_end_with_the_rules_code() {
    let bench = Bench::new();
    let mut wrong_device = bench.connect().await;
    wrong_device
        .claim(v1::MasterArbitrationUpdate {
            device_id: 8,
            ..claim("", Some(1))
        })
        .await;
    assert_eq!(wrong_device.end().await, tonic::Code::NotFound);

    let mut one = bench.primary(10).await;
    let mut same = bench.connect().await;
    same.claim(claim("", Some(10))).await;
    assert_eq!(same.end().await, tonic::Code::InvalidArgument);

    let mut config = bench.connect().await;
    let mut with_config = claim("x", Some(1));
    with_config.role.as_mut().unwrap().config = Some(prost_types::Any {
        type_url: "type.googleapis.com/unknown.Role".into(),
        value: vec![1],
    });
    config.claim(with_config).await;
    assert_eq!(config.end().await, tonic::Code::InvalidArgument);

    one.claim(claim("other", Some(12))).await;
    assert_eq!(one.end().await, tonic::Code::FailedPrecondition);
}

#[tokio::test]
async fn too_many_streams_are_refused() {
    let bench = Bench::with(|config| config.max_streams_per_role = 2);
    let _one = bench.primary(1).await;
    let _two = bench.primary(2).await;
    let mut three = bench.connect().await;
    three.claim(claim("", Some(3))).await;
    assert_eq!(three.end().await, tonic::Code::ResourceExhausted);
}

#[tokio::test]
async fn deprecated_role_ids_are_roles() {
    let bench = Bench::new();
    let mut old = bench.connect().await;
    #[allow(deprecated)]
    let role = v1::Role {
        id: 3,
        ..Default::default()
    };
    old.claim(v1::MasterArbitrationUpdate {
        role: Some(role),
        ..claim("", Some(1))
    })
    .await;
    match old.next().await.unwrap() {
        v1::stream_message_response::Update::Arbitration(update) => {
            #[allow(deprecated)]
            let id = update.role.unwrap().id;
            assert_eq!(id, 3);
        }
        other => panic!("{other:?}"),
    }
    // The default role is another one.
    bench.primary(1).await;
}

#[tokio::test]
async fn requests_name_the_device_the_role_and_the_primary() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let write = |device_id, role: &str, election_id| v1::WriteRequest {
        device_id,
        role: role.into(),
        election_id,
        ..Default::default()
    };
    let id = |low| Some(v1::Uint128 { high: 0, low });
    for (request, code) in [
        (write(DEVICE + 1, "", id(1)), tonic::Code::NotFound),
        (write(0, "", id(1)), tonic::Code::NotFound),
        (write(DEVICE, "nobody", id(1)), tonic::Code::NotFound),
        (write(DEVICE, "", id(2)), tonic::Code::PermissionDenied),
        (write(DEVICE, "", None), tonic::Code::PermissionDenied),
    ] {
        assert_eq!(one.client.write(request).await.unwrap_err().code(), code);
    }
    one.client.write(write(DEVICE, "", id(1))).await.unwrap();
    let mut nobody = bench.connect().await;
    let no_device = v1::MasterArbitrationUpdate {
        device_id: 0,
        ..claim("", Some(5))
    };
    nobody.claim(no_device).await;
    assert_eq!(nobody.end().await, tonic::Code::NotFound);
    for device_id in [0, DEVICE + 1] {
        let read = v1::ReadRequest {
            device_id,
            ..Default::default()
        };
        let read = one.client.read(read).await.unwrap_err();
        let get = v1::GetForwardingPipelineConfigRequest {
            device_id,
            ..Default::default()
        };
        let get = one.client.get_forwarding_pipeline_config(get).await;
        let set = v1::SetForwardingPipelineConfigRequest {
            device_id,
            election_id: id(1),
            action: Action::VerifyAndCommit as i32,
            config: Some(pipeline(1)),
            ..Default::default()
        };
        let set = one.client.set_forwarding_pipeline_config(set).await;
        for status in [read, get.unwrap_err(), set.unwrap_err()] {
            assert_eq!(status.code(), tonic::Code::NotFound, "{device_id}");
        }
    }
}

#[tokio::test]
async fn capabilities() {
    let bench = Bench::new();
    let mut client = bench.connect().await.client;
    for device_id in [0, DEVICE] {
        let answer = client
            .capabilities(v1::CapabilitiesRequest { device_id })
            .await
            .unwrap();
        assert_eq!(answer.into_inner().p4runtime_api_version, "1.5.0");
    }
    let wrong = client
        .capabilities(v1::CapabilitiesRequest { device_id: 99 })
        .await
        .unwrap_err();
    assert_eq!(wrong.code(), tonic::Code::NotFound);
}
