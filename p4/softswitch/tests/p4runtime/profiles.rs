//! Members, groups and one-shot action sets.

use p4runtime::rpc::Code;
use p4runtime::v1::{self, entity::Entity, table_action::Type as Does};

use super::common::{Bench, EXISTS, FULL, IN_USE, INVALID, MISSING, action, exact, id, table};

pub(super) fn member(member_id: u32, port: u8) -> Entity {
    Entity::ActionProfileMember(v1::ActionProfileMember {
        action_profile_id: id("spread"),
        member_id,
        action: Some(action("send", &[&[port]])),
    })
}

pub(super) fn group(group_id: u32, members: &[(u32, i32)], max_size: i32) -> Entity {
    let members = members
        .iter()
        .map(|(member_id, weight)| v1::action_profile_group::Member {
            member_id: *member_id,
            weight: *weight,
            watch_kind: None,
        });
    Entity::ActionProfileGroup(v1::ActionProfileGroup {
        action_profile_id: id("spread"),
        group_id,
        members: members.collect(),
        max_size,
    })
}

fn grouped(tos: u8, does: Does) -> Entity {
    table(v1::TableEntry {
        table_id: id("groups"),
        r#match: vec![exact(1, &[tos])],
        action: Some(v1::TableAction { r#type: Some(does) }),
        ..Default::default()
    })
}

#[tokio::test]
async fn members_and_groups() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    assert_eq!(one.insert(member(0, 1)).await, INVALID);
    assert_eq!(one.modify(member(1, 1)).await, MISSING);
    assert_eq!(one.insert(member(1, 1)).await, Ok(()));
    assert_eq!(one.insert(member(1, 1)).await, EXISTS);
    assert_eq!(one.insert(member(2, 2)).await, Ok(()));
    assert_eq!(one.modify(member(2, 3)).await, Ok(()));
    let no_action = v1::ActionProfileMember {
        action_profile_id: id("spread"),
        member_id: 3,
        action: None,
    };
    assert_eq!(
        one.insert(Entity::ActionProfileMember(no_action)).await,
        INVALID
    );
    let wrong = v1::ActionProfileMember {
        action_profile_id: id("spread"),
        member_id: 3,
        action: Some(action("learn", &[])),
    };
    assert_eq!(
        one.insert(Entity::ActionProfileMember(wrong)).await,
        INVALID
    );

    assert_eq!(one.insert(group(0, &[], 0)).await, INVALID);
    assert_eq!(one.insert(group(1, &[(9, 1)], 0)).await, MISSING);
    assert_eq!(one.insert(group(1, &[(1, 0)], 0)).await, INVALID);
    assert_eq!(one.insert(group(1, &[(1, -1)], 0)).await, INVALID);
    assert_eq!(one.insert(group(1, &[(1, 1), (1, 1)], 0)).await, INVALID);
    assert_eq!(one.insert(group(1, &[(1, 1)], -1)).await, INVALID);
    assert_eq!(one.modify(group(1, &[(1, 1)], 4)).await, MISSING);
    assert_eq!(one.insert(group(1, &[(1, 3), (2, 2)], 4)).await, FULL);
    assert_eq!(one.insert(group(1, &[(1, 1), (2, 2)], 4)).await, Ok(()));
    assert_eq!(one.insert(group(1, &[], 4)).await, EXISTS);
    assert_eq!(
        one.modify(group(1, &[(1, 1)], 5)).await,
        INVALID,
        "max_size is fixed"
    );
    assert_eq!(one.modify(group(1, &[(2, 1)], 4)).await, Ok(()));

    assert_eq!(
        one.insert(grouped(1, Does::ActionProfileGroupId(7))).await,
        MISSING
    );
    assert_eq!(
        one.insert(grouped(1, Does::ActionProfileMemberId(7))).await,
        MISSING
    );
    assert_eq!(
        one.insert(grouped(1, Does::ActionProfileGroupId(1))).await,
        Ok(())
    );
    assert_eq!(
        one.insert(grouped(2, Does::ActionProfileMemberId(1))).await,
        Ok(())
    );
    assert_eq!(
        one.insert(grouped(3, Does::Action(action("send", &[&[1]]))))
            .await,
        INVALID
    );
    // Members of different actions in one group.
    let drops = v1::ActionProfileMember {
        action_profile_id: id("spread"),
        member_id: 4,
        action: Some(action("drop", &[])),
    };
    let drops = Entity::ActionProfileMember(drops);
    assert_eq!(one.insert(drops.clone()).await, Ok(()));
    let both = group(4, &[(4, 1), (1, 1)], 4);
    assert_eq!(one.insert(both.clone()).await, Ok(()));
    assert_eq!(
        one.read(both.clone()).await,
        [both.clone()],
        "in this order"
    );
    assert_eq!(one.delete(both).await, Ok(()));
    assert_eq!(one.delete(drops).await, Ok(()));
    assert_eq!(one.delete(group(1, &[], 0)).await, IN_USE);
    assert_eq!(one.delete(member(2, 0)).await, IN_USE, "in the group");
    assert_eq!(one.delete(member(1, 0)).await, IN_USE, "in an entry");
    assert_eq!(
        one.read(Entity::ActionProfileMember(Default::default()))
            .await,
        [member(1, 1), member(2, 3)]
    );
    assert_eq!(one.read(group(0, &[], 0)).await, [group(1, &[(2, 1)], 4)]);
    assert_eq!(
        one.delete(grouped(1, Does::ActionProfileGroupId(1))).await,
        Ok(())
    );
    assert_eq!(one.delete(group(1, &[], 0)).await, Ok(()));
    assert_eq!(one.delete(group(1, &[], 0)).await, MISSING);
    assert_eq!(one.delete(member(2, 0)).await, Ok(()));
    assert_eq!(one.delete(member(2, 0)).await, MISSING);
}

#[tokio::test]
async fn profiles_without_selector_have_members_only() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    let member = |member_id| {
        Entity::ActionProfileMember(v1::ActionProfileMember {
            action_profile_id: id("fixed"),
            member_id,
            action: Some(action("send", &[&[1]])),
        })
    };
    for n in 1..=8 {
        assert_eq!(one.insert(member(n)).await, Ok(()));
    }
    assert_eq!(one.insert(member(9)).await, FULL);
    let group = v1::ActionProfileGroup {
        action_profile_id: id("fixed"),
        group_id: 1,
        ..Default::default()
    };
    assert_eq!(one.insert(Entity::ActionProfileGroup(group)).await, INVALID);
    let entry = |does| {
        table(v1::TableEntry {
            table_id: id("indirect"),
            r#match: vec![exact(1, &[1])],
            action: Some(v1::TableAction { r#type: Some(does) }),
            ..Default::default()
        })
    };
    assert_eq!(
        one.insert(entry(Does::ActionProfileGroupId(1))).await,
        INVALID
    );
    assert_eq!(
        one.insert(entry(Does::ActionProfileActionSet(Default::default())))
            .await,
        INVALID
    );
    assert_eq!(
        one.insert(entry(Does::ActionProfileMemberId(8))).await,
        Ok(())
    );
}

fn choice(port: u8, weight: i32) -> v1::ActionProfileAction {
    v1::ActionProfileAction {
        action: Some(action("send", &[&[port]])),
        weight,
        watch_kind: Some(v1::action_profile_action::WatchKind::WatchPort(vec![port])),
    }
}

fn set(choices: Vec<v1::ActionProfileAction>) -> Does {
    Does::ActionProfileActionSet(v1::ActionProfileActionSet {
        action_profile_actions: choices,
        ..Default::default()
    })
}

#[tokio::test]
async fn one_shots() {
    let bench = Bench::new();
    let mut one = bench.ready().await;
    assert_eq!(
        one.insert(grouped(1, set(vec![choice(1, 0)]))).await,
        INVALID
    );
    let entry = grouped(1, set(vec![choice(1, 2), choice(1, 2), choice(2, 1)]));
    assert_eq!(one.insert(entry.clone()).await, Ok(()));
    let all = Entity::TableEntry(v1::TableEntry {
        table_id: id("groups"),
        ..Default::default()
    });
    assert_eq!(
        one.read(all.clone()).await,
        std::slice::from_ref(&entry),
        "as it was written"
    );
    assert!(
        one.read(Entity::ActionProfileMember(Default::default()))
            .await
            .is_empty()
    );
    assert!(one.read(group(0, &[], 0)).await.is_empty());
    // One style per selector.
    assert_eq!(one.insert(member(1, 1)).await, INVALID);
    assert_eq!(one.insert(group(1, &[], 0)).await, INVALID);
    use v1::action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics as Size};
    let with = |mode: i32, size: i32| {
        let mut does = set(vec![choice(1, 1)]);
        if let Does::ActionProfileActionSet(s) = &mut does {
            s.action_selection_mode = mode;
            s.size_semantics = size;
        }
        grouped(2, does)
    };
    for mode in [Mode::Random, Mode::Hash] {
        for size in [Size::SumOfWeights, Size::SumOfMembers] {
            let entry = with(mode as i32, size as i32);
            assert_eq!(one.insert(entry.clone()).await, Ok(()), "{mode:?} {size:?}");
            assert!(one.read(all.clone()).await.contains(&entry), "as written");
            assert_eq!(one.delete(entry).await, Ok(()));
        }
    }
    assert_eq!(one.insert(with(9, 0)).await, INVALID);
    assert_eq!(one.insert(with(0, 9)).await, INVALID);
    let mut pre = set(vec![choice(1, 1)]);
    if let Does::ActionProfileActionSet(s) = &mut pre {
        s.group_action = Some(action("send", &[&[1]]));
    }
    assert_eq!(one.insert(grouped(2, pre)).await, Err(Code::Unimplemented));
    // The selector's size is 64: all weights of all groups.
    assert_eq!(
        one.insert(grouped(2, set(vec![choice(1, 60)]))).await,
        FULL,
        "entry 1 has 5 already"
    );
    let fitting = grouped(2, set(vec![choice(1, 59)]));
    assert_eq!(one.insert(fitting.clone()).await, Ok(()));
    assert_eq!(one.delete(fitting).await, Ok(()));
    assert_eq!(
        one.modify(grouped(1, set(vec![choice(3, 1)]))).await,
        Ok(())
    );
    assert_eq!(one.read(all).await, [grouped(1, set(vec![choice(3, 1)]))]);
    assert_eq!(one.delete(entry).await, Ok(()));
    assert_eq!(one.insert(member(1, 1)).await, Ok(()));
    assert_eq!(
        one.insert(grouped(1, set(vec![choice(1, 1)]))).await,
        INVALID
    );
}
