//! The rules of the specification, one test each.

#![allow(clippy::unwrap_used)]

use super::*;

const DEVICE: u64 = 7;

fn arbiter() -> Arbiter {
    Arbiter::new(DEVICE, 4, 8)
}

fn claim(election_id: u128) -> Claim {
    Claim {
        device_id: DEVICE,
        election_id: Some(election_id),
        ..Claim::default()
    }
}

fn backup_only() -> Claim {
    Claim {
        device_id: DEVICE,
        ..Claim::default()
    }
}

fn of_role(role: &str, election_id: u128) -> Claim {
    Claim {
        role: role.into(),
        ..claim(election_id)
    }
}

/// (stream, status, election id) of every notice.
fn told(notices: &[Notice]) -> Vec<(StreamId, Code, Option<u128>)> {
    notices
        .iter()
        .map(|n| (n.stream, n.status, n.election_id))
        .collect()
}

#[test]
fn first_client_with_an_id_becomes_primary() {
    let mut a = arbiter();
    let notices = a.claim(1, claim(10)).unwrap();
    assert_eq!(told(&notices), [(1, Code::Ok, Some(10))]);
    assert!(a.is_primary(1));
    a.check_primary("", Some(10)).unwrap();
}

#[test]
fn election_id_zero_is_an_id() {
    let mut a = arbiter();
    assert_eq!(
        told(&a.claim(1, claim(0)).unwrap()),
        [(1, Code::Ok, Some(0))]
    );
    a.check_primary("", Some(0)).unwrap();
}

#[test]
fn unset_id_never_becomes_primary() {
    let mut a = arbiter();
    let notices = a.claim(1, backup_only()).unwrap();
    assert_eq!(told(&notices), [(1, Code::NotFound, None)]);
    assert_eq!(
        a.check_primary("", None).unwrap_err().code,
        Code::PermissionDenied
    );
    // Several clients may leave it unset.
    a.claim(2, backup_only()).unwrap();
    // And a primary makes them backups.
    let notices = a.claim(3, claim(1)).unwrap();
    assert_eq!(
        told(&notices),
        [
            (1, Code::AlreadyExists, Some(1)),
            (2, Code::AlreadyExists, Some(1)),
            (3, Code::Ok, Some(1))
        ]
    );
}

#[test]
fn lower_id_is_a_backup_and_only_it_is_told() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    let notices = a.claim(2, claim(9)).unwrap();
    assert_eq!(told(&notices), [(2, Code::AlreadyExists, Some(10))]);
    assert!(a.is_primary(1));
}

#[test]
fn higher_id_takes_over_and_everybody_is_told_primary_last() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    a.claim(2, claim(9)).unwrap();
    let notices = a.claim(3, claim(11)).unwrap();
    assert_eq!(
        told(&notices),
        [
            (1, Code::AlreadyExists, Some(11)),
            (2, Code::AlreadyExists, Some(11)),
            (3, Code::Ok, Some(11))
        ]
    );
    assert_eq!(
        a.check_primary("", Some(10)).unwrap_err().code,
        Code::PermissionDenied
    );
    a.check_primary("", Some(11)).unwrap();
}

#[test]
fn backup_promotes_itself_with_a_new_id() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    a.claim(2, claim(9)).unwrap();
    let notices = a.claim(2, claim(20)).unwrap();
    assert_eq!(
        told(&notices),
        [(1, Code::AlreadyExists, Some(20)), (2, Code::Ok, Some(20))]
    );
}

#[test]
fn primary_downgrades_itself() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    a.claim(2, claim(9)).unwrap();
    let notices = a.claim(1, claim(5)).unwrap();
    assert_eq!(
        told(&notices),
        [(1, Code::NotFound, Some(10)), (2, Code::NotFound, Some(10))]
    );
    for id in [5, 9, 10] {
        assert!(a.check_primary("", Some(id)).is_err());
    }
    // Nobody below the highest id ever seen comes back.
    assert_eq!(
        told(&a.claim(2, claim(9)).unwrap()),
        [(2, Code::NotFound, Some(10))]
    );
    assert_eq!(
        told(&a.claim(2, claim(10)).unwrap()),
        [(1, Code::AlreadyExists, Some(10)), (2, Code::Ok, Some(10))]
    );
}

#[test]
fn primary_that_repeats_itself_stays_and_all_are_told() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    a.claim(2, claim(9)).unwrap();
    let notices = a.claim(1, claim(10)).unwrap();
    assert_eq!(
        told(&notices),
        [(2, Code::AlreadyExists, Some(10)), (1, Code::Ok, Some(10))]
    );
}

#[test]
fn primary_that_leaves_is_not_replaced() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    a.claim(2, claim(9)).unwrap();
    assert_eq!(told(&a.disconnect(1)), [(2, Code::NotFound, Some(10))]);
    assert_eq!(
        a.check_primary("", Some(10)).unwrap_err().code,
        Code::PermissionDenied
    );
    assert_eq!(
        a.check_primary("", Some(9)).unwrap_err().code,
        Code::PermissionDenied
    );
    // The same id may come back once its old stream is gone.
    assert_eq!(
        told(&a.claim(3, claim(10)).unwrap()),
        [(2, Code::AlreadyExists, Some(10)), (3, Code::Ok, Some(10))]
    );
}

#[test]
fn backup_that_leaves_is_nobodys_news() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    a.claim(2, claim(9)).unwrap();
    assert!(a.disconnect(2).is_empty());
    assert!(a.disconnect(99).is_empty());
    // Its id is free again.
    a.claim(3, claim(9)).unwrap();
}

#[test]
fn unknown_device_is_not_found() {
    let mut a = arbiter();
    let wrong = Claim {
        device_id: 8,
        ..claim(1)
    };
    assert_eq!(a.claim(1, wrong).unwrap_err().code, Code::NotFound);
    assert_eq!(a.role_of(1), None);
}

#[test]
fn id_of_another_live_client_is_refused() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    a.claim(2, claim(9)).unwrap();
    assert_eq!(
        a.claim(3, claim(10)).unwrap_err().code,
        Code::InvalidArgument
    );
    assert_eq!(
        a.claim(2, claim(10)).unwrap_err().code,
        Code::InvalidArgument
    );
    assert_eq!(
        a.claim(4, claim(9)).unwrap_err().code,
        Code::InvalidArgument
    );
}

#[test]
fn device_and_role_of_a_live_stream_are_fixed() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    let device = Claim {
        device_id: 8,
        ..claim(11)
    };
    assert_eq!(
        a.claim(1, device).unwrap_err().code,
        Code::FailedPrecondition
    );
    assert_eq!(
        a.claim(1, of_role("qos", 11)).unwrap_err().code,
        Code::FailedPrecondition
    );
    assert!(a.is_primary(1));
}

#[test]
fn streams_per_role_are_limited() {
    let mut a = arbiter();
    for stream in 1..=4 {
        a.claim(stream, claim(u128::from(stream))).unwrap();
    }
    assert_eq!(
        a.claim(5, claim(5)).unwrap_err().code,
        Code::ResourceExhausted
    );
    // Another role has its own limit, and live clients may go on.
    a.claim(6, of_role("qos", 5)).unwrap();
    a.claim(4, claim(8)).unwrap();
}

#[test]
fn roles_have_their_own_primaries_and_ids() {
    let mut a = arbiter();
    a.claim(1, claim(10)).unwrap();
    let notices = a.claim(2, of_role("qos", 3)).unwrap();
    assert_eq!(told(&notices), [(2, Code::Ok, Some(3))]);
    assert_eq!(notices[0].role, "qos");
    a.check_primary("qos", Some(3)).unwrap();
    assert_eq!(
        a.check_primary("qos", Some(10)).unwrap_err().code,
        Code::PermissionDenied
    );
    assert_eq!(
        a.check_primary("none", Some(10)).unwrap_err().code,
        Code::NotFound
    );
    // The same id in two roles is no duplicate.
    a.claim(3, of_role("qos", 10)).unwrap();
    assert_eq!(a.primaries().collect::<Vec<_>>(), [("", 1), ("qos", 3)]);
}

#[test]
fn default_role_exists_before_anybody_claims_it() {
    let a = arbiter();
    assert_eq!(
        a.check_primary("", Some(1)).unwrap_err().code,
        Code::PermissionDenied
    );
}

#[test]
fn role_config_is_the_last_primarys() {
    // Field 1 (an id) with different values.
    let config = |v: u8| RoleConfig {
        type_url: crate::server::roles::ROLE_CONFIG_TYPE_URL.into(),
        value: vec![8, v],
    };
    let with = |id, v| Claim {
        config: Some(config(v)),
        ..of_role("qos", id)
    };
    let mut a = arbiter();
    a.claim(1, with(10, 1)).unwrap();
    let notices = a.claim(2, with(9, 2)).unwrap();
    assert_eq!(
        notices[0].config,
        Some(config(1)),
        "a backup's config is not taken"
    );
    let notices = a.claim(1, with(10, 3)).unwrap();
    assert!(notices.iter().all(|n| n.config == Some(config(3))));
    assert_eq!(notices.len(), 2);
    a.disconnect(1);
    assert_eq!(
        a.config_of("qos"),
        Some(&config(3)),
        "remembered without a primary"
    );
}

#[test]
fn config_of_another_scheme_is_refused() {
    let mut a = arbiter();
    let config = RoleConfig {
        type_url: "t".into(),
        value: vec![],
    };
    let wrong = Claim {
        config: Some(config),
        ..of_role("qos", 1)
    };
    assert_eq!(a.claim(1, wrong).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(a.role_of(1), None);
}

#[test]
fn ids_use_all_128_bits() {
    let mut a = arbiter();
    a.claim(1, claim(u128::from(u64::MAX))).unwrap();
    a.claim(2, claim(1 << 64)).unwrap();
    assert!(a.is_primary(2));
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Claim(StreamId, Option<u128>),
        Leave(StreamId),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1u64..6, proptest::option::of(0u128..6)).prop_map(|(s, e)| Step::Claim(s, e)),
            1 => (1u64..6).prop_map(Step::Leave),
        ]
    }

    proptest! {
        /// At most one primary, always the live client with the highest id ever accepted as
        /// one; and that highest id never falls.
        #[test]
        fn one_primary_with_the_highest_id(steps in proptest::collection::vec(step(), 0..40)) {
            let mut a = Arbiter::new(DEVICE, 100, 8);
            let mut highest: Option<u128> = None;
            let mut live = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Claim(stream, election_id) => {
                        let asked = Claim { device_id: DEVICE, election_id, ..Claim::default() };
                        if let Ok(notices) = a.claim(stream, asked) {
                            live.insert(stream, election_id);
                            highest = highest.max(election_id);
                            prop_assert!(notices.iter().any(|n| n.stream == stream));
                        }
                    }
                    Step::Leave(stream) => {
                        a.disconnect(stream);
                        live.remove(&stream);
                    }
                }
                let expected = live
                    .iter()
                    .find(|(_, id)| id.is_some() && **id == highest)
                    .map(|(s, _)| *s);
                prop_assert_eq!(a.primaries().next().map(|(_, s)| s), expected);
                let may_write = (0..6).filter(|id| a.check_primary("", Some(*id)).is_ok()).count();
                prop_assert_eq!(may_write, usize::from(expected.is_some()));
            }
        }
    }
}
