//! Selectors: what counts as their size, and which weights they take.

use p4runtime::config::v1::{self as config, action_profile::SelectorSizeSemantics as Semantics};
use p4runtime::v1::{
    self, entity::Entity, set_forwarding_pipeline_config_request::Action as PipelineAction,
    table_action::Type as Does,
};

use super::common::{Bench, Controller, FULL, INVALID, action, exact, id, pipeline, table};
use super::profiles::{group, member};

/// A controller of the program whose selector `spread` is changed.
async fn with_spread(bench: &Bench, change: impl FnOnce(&mut config::ActionProfile)) -> Controller {
    let mut config = pipeline(1);
    let profiles = &mut config.p4info.as_mut().unwrap().action_profiles;
    let mut all = profiles.iter_mut();
    change(
        all.find(|p| p.preamble.as_ref().unwrap().alias == "spread")
            .unwrap(),
    );
    let mut one = bench.primary(1).await;
    one.push(PipelineAction::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    for n in 1..=5 {
        assert_eq!(one.insert(member(n, n as u8)).await, Ok(()));
    }
    one
}

fn one_shot(tos: u8, weights: &[i32]) -> Entity {
    let choices = weights.iter().map(|weight| v1::ActionProfileAction {
        action: Some(action("send", &[&[1]])),
        weight: *weight,
        watch_kind: None,
    });
    let set = v1::ActionProfileActionSet {
        action_profile_actions: choices.collect(),
        ..Default::default()
    };
    table(v1::TableEntry {
        table_id: id("groups"),
        r#match: vec![exact(1, &[tos])],
        action: Some(v1::TableAction {
            r#type: Some(Does::ActionProfileActionSet(set)),
        }),
        ..Default::default()
    })
}

#[tokio::test]
async fn sizes_by_weights() {
    let bench = Bench::new();
    let mut one = with_spread(&bench, |p| p.max_group_size = 10).await;
    assert_eq!(one.insert(group(1, &[(1, 1)], 11)).await, INVALID);
    assert_eq!(
        one.insert(group(1, &[(1, 11)], 0)).await,
        FULL,
        "of max_group_size"
    );
    assert_eq!(one.insert(group(1, &[(1, 5), (2, 5)], 10)).await, Ok(()));
    assert_eq!(one.modify(group(1, &[(1, 5), (2, 6)], 10)).await, FULL);
    assert_eq!(one.modify(group(1, &[(1, 4), (2, 6)], 10)).await, Ok(()));
    // 64 in all groups.
    for n in 2..=6 {
        assert_eq!(one.insert(group(n, &[(3, 10)], 10)).await, Ok(()), "{n}");
    }
    assert_eq!(one.insert(group(7, &[(3, 5)], 10)).await, FULL);
    assert_eq!(one.insert(group(7, &[(3, 4)], 10)).await, Ok(()));
    assert_eq!(one.delete(group(6, &[], 0)).await, Ok(()));
    assert_eq!(one.insert(group(6, &[(3, 10)], 10)).await, Ok(()));
}

#[tokio::test]
async fn sizes_by_members() {
    let bench = Bench::new();
    let mut one = with_spread(&bench, |p| {
        p.max_group_size = 3;
        p.selector_size_semantics = Some(Semantics::SumOfMembers(
            config::action_profile::SumOfMembers {
                max_member_weight: 100,
            },
        ));
    })
    .await;
    assert_eq!(one.insert(group(1, &[(1, 101)], 3)).await, INVALID);
    assert_eq!(
        one.insert(group(1, &[(1, 100), (2, 100), (3, 100)], 3))
            .await,
        Ok(())
    );
    let four = [(1, 1), (2, 1), (3, 1), (4, 1)];
    assert_eq!(one.insert(group(2, &four, 3)).await, FULL);
    assert_eq!(one.delete(group(1, &[], 0)).await, Ok(()));
    for n in 1..=5 {
        assert_eq!(one.delete(member(n, 0)).await, Ok(()));
    }
    assert_eq!(one.insert(one_shot(1, &[100, 100, 100])).await, Ok(()));
    assert_eq!(one.insert(one_shot(2, &[1, 1, 1, 1])).await, INVALID);
    assert_eq!(one.insert(one_shot(2, &[101])).await, INVALID);
}

#[tokio::test]
async fn huge_weights_take_no_room() {
    let bench = Bench::new();
    let mut one = with_spread(&bench, |p| {
        p.selector_size_semantics = Some(Semantics::SumOfMembers(Default::default()));
    })
    .await;
    let heavy = group(1, &[(1, i32::MAX), (2, i32::MAX)], 0);
    assert_eq!(one.insert(heavy).await, Ok(()));
}

#[tokio::test]
async fn weights_that_are_the_switchs_own() {
    let bench = Bench::new();
    let mut one = with_spread(&bench, |p| p.weights_disallowed = true).await;
    assert_eq!(one.insert(group(1, &[(1, 1)], 0)).await, INVALID);
    let unweighted = group(1, &[(1, 0), (2, 0)], 0);
    assert_eq!(one.insert(unweighted.clone()).await, Ok(()));
    assert_eq!(one.read(group(0, &[], 0)).await, [unweighted]);
}

#[tokio::test]
async fn a_modified_member_changes_every_group() {
    let bench = Bench::new();
    let mut one = with_spread(&bench, |_| {}).await;
    for (tos, number) in [(1, 1), (2, 2)] {
        assert_eq!(one.insert(group(number, &[(3, 1)], 0)).await, Ok(()));
        let entry = v1::TableEntry {
            table_id: id("groups"),
            r#match: vec![exact(1, &[tos])],
            action: Some(v1::TableAction {
                r#type: Some(Does::ActionProfileGroupId(number)),
            }),
            ..Default::default()
        };
        assert_eq!(one.insert(table(entry)).await, Ok(()));
    }
    let leaves_by = |tos: u8| {
        let mut ip = vec![0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 2, 8, 0, 0x45, tos];
        ip.resize(60, 0);
        let mut switch = bench.switch.lock();
        switch.ingress(3, &ip, 0);
        let mut ready = Vec::new();
        switch.take_ready(&mut ready);
        for port in &ready {
            while switch.dequeue(*port, 0).is_some() {}
        }
        ready
    };
    // Addresses that l2 knows not are dropped, unless an entry says that nothing is to be done.
    let idle = v1::TableEntry {
        table_id: id("l2"),
        r#match: vec![exact(1, &[9])],
        action: super::common::does("NoAction", &[]),
        ..Default::default()
    };
    assert_eq!(one.insert(table(idle)).await, Ok(()));
    assert_eq!((leaves_by(1), leaves_by(2)), (vec![3], vec![3]));
    assert_eq!(one.modify(member(3, 7)).await, Ok(()));
    assert_eq!((leaves_by(1), leaves_by(2)), (vec![7], vec![7]));
}
