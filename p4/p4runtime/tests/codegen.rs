//! What `p4runtime::codegen` makes of a small program: the text is the one that
//! is committed, and that text compiles and does what it says.

#![allow(clippy::unwrap_used)]

use p4runtime::codegen;
use p4runtime::entry::check::{self, Intent};
use p4runtime::info::Index;
use p4runtime::typed::{Call, Counted, Error, Indirect, Lpm, Range, TableKey, Ternary};
use p4runtime::v1::{CounterData, TableEntry};
use proptest::prelude::*;

#[allow(missing_docs, unreachable_pub)]
mod sample {
    include!("data/sample.rs.txt");
}

use sample::{
    Acl, AclAction, AnyEntry, Fixed, FixedAction, PacketInHeader, PacketOutHeader, Route,
    RouteAction, SessionWatch, SessionWatchAction, Spread, SpreadProfileMember,
};

const P4INFO: &str = include_str!("data/sample.p4info.txtpb");

fn index() -> Index {
    Index::parse_text(P4INFO).unwrap()
}

/// The text is compared so that a change of the generator is seen in review;
/// `UPDATE_GENERATED=1 cargo test -p p4runtime --test codegen` accepts it.
#[test]
fn the_committed_code_is_what_is_generated() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sample.rs.txt");
    let generated = codegen::generate(index().p4info()).unwrap();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    let differs = committed
        .lines()
        .zip(generated.lines())
        .position(|(a, b)| a != b);
    assert!(
        committed == generated,
        "{path} differs from what is generated, first in line {differs:?} (from 0)"
    );
}

#[test]
fn typed_entries_keep_the_rules() {
    let route = Route {
        vrf: 7,
        dst_addr: Lpm {
            value: 0x0a01_0000,
            prefix_len: 16,
        },
    };
    let action = RouteAction::Forward {
        port: 3,
        dst_mac: 0x0200_0000_0001,
    };
    let entry = route.to_table_entry(&action).unwrap();
    let by_name = index();
    let by_name = by_name.table("route").unwrap().entry().exact("vrf", 7u8);
    let by_name = by_name.lpm("dst_addr", [10, 1, 0, 0], 16);
    let by_name = by_name.action("forward", [("port", 3u64), ("dst_mac", 0x0200_0000_0001)]);
    assert_eq!(entry, by_name.build().unwrap());
    assert_eq!(
        Route::try_from_table_entry(&entry).unwrap(),
        (route.clone(), action.clone())
    );
    assert_eq!(Route::SIZE, 1024);

    let any = AnyEntry::from((route, action));
    assert_eq!(any.to_table_entry().unwrap(), entry);
    assert_eq!(AnyEntry::try_from_table_entry(&entry).unwrap(), any);
    assert!(any.to_key().unwrap().action.is_none());
}

#[test]
fn values_are_held_to_their_width() {
    let wide = RouteAction::Forward {
        port: 512,
        dst_mac: 0,
    };
    let error = wide.to_table_action().unwrap_err();
    let text = "`forward`, `port`: the value 0x0200 needs 10 bits, but the type has 9";
    assert_eq!(error.to_string(), text);
    let beyond = Route {
        vrf: 0,
        dst_addr: Lpm {
            value: 1,
            prefix_len: 8,
        },
    };
    assert!(matches!(
        beyond.to_key(),
        Err(Error::Field {
            field: "dst_addr",
            ..
        })
    ));
    let long = Route {
        vrf: 0,
        dst_addr: Lpm {
            value: 0,
            prefix_len: 33,
        },
    };
    assert!(long.to_key().is_err());
    let acl = |priority, dst_port| Acl {
        priority,
        src_addr: Ternary::default(),
        dst_port,
        r#type: None,
    };
    assert!(acl(0, None).to_key().is_err());
    assert!(acl(1, Some(Range { low: 2, high: 1 })).to_key().is_err());
    let all = acl(
        1,
        Some(Range {
            low: 0,
            high: 0xffff,
        }),
    )
    .to_key()
    .unwrap();
    assert!(all.r#match.is_empty(), "a full range is left out");
}

#[test]
fn entries_of_others_are_refused() {
    let route = Route {
        vrf: 1,
        dst_addr: Lpm::default(),
    };
    let entry = route.to_table_entry(&RouteAction::Drop).unwrap();
    assert!(matches!(
        Acl::try_from_table_entry(&entry),
        Err(Error::Id { .. })
    ));
    let default = Route::default_entry(Some(&RouteAction::Drop)).unwrap();
    assert!(Route::try_from_table_entry(&default).is_err());
    let other = TableEntry {
        table_id: 1,
        ..entry.clone()
    };
    assert!(matches!(
        AnyEntry::try_from_table_entry(&other),
        Err(Error::Id { id: 1, .. })
    ));
    let mut extra = entry.clone();
    extra.r#match.push(extra.r#match[0].clone());
    extra.r#match[1].field_id = 9;
    assert!(Route::try_from_table_entry(&extra).is_err());
    let mut none = entry;
    none.r#match.clear();
    assert!(Route::try_from_table_entry(&none).is_err());
}

#[test]
fn every_kind_of_object_is_there() {
    let index = index();
    let counter = sample::counters::DROPS;
    assert_eq!(
        counter.id,
        index
            .counter("drops")
            .unwrap()
            .preamble
            .as_ref()
            .unwrap()
            .id
    );
    assert_eq!(counter.size, 512);
    let data = CounterData {
        byte_count: 64,
        packet_count: 1,
    };
    assert_eq!(counter.read(&counter.set(9, data)), Some((9, data)));
    assert_eq!(counter.read(&counter.all()), None);
    assert_eq!(sample::meters::LIMITS.size, 64);
    assert_eq!(sample::registers::LAST_SEEN.size, 128);
    assert_eq!(sample::digests::LEARN_T.name, "learn_t");
    assert_eq!(sample::TABLES[0], (Route::ID, "route"));

    let spread = Spread { group: 4 };
    let entry = spread.to_table_entry(&Indirect::Group(9)).unwrap();
    assert_eq!(
        Spread::try_from_table_entry(&entry).unwrap(),
        (spread, Indirect::Group(9))
    );
    let member = SpreadProfileMember::Forward {
        port: 1,
        dst_mac: 2,
    }
    .to_member(5)
    .unwrap();
    assert_eq!(
        member,
        index
            .member("spread_profile", 5, member.action.clone().unwrap())
            .unwrap()
    );

    let acl = Acl {
        priority: 5,
        src_addr: Ternary {
            value: 1 << 127,
            mask: 1 << 127,
        },
        dst_port: None,
        r#type: Some(0),
    };
    let counted = acl.to_counter(Some(data)).unwrap();
    assert_eq!(Acl::try_from_counter(&counted).unwrap(), (acl, data));

    let wide = SessionWatchAction::Count {
        r#match: vec![9; 20],
    };
    let entry = SessionWatch { session: 1 }.to_table_entry(&wide).unwrap();
    assert_eq!(SessionWatch::try_from_table_entry(&entry).unwrap().1, wide);
    assert_ne!(FixedAction::Drop, FixedAction::Count { r#match: vec![1] });
    assert_eq!(Fixed::NAME, "fixed");
}

#[test]
fn headers() {
    let out = PacketOutHeader {
        egress_port: 300,
        submit_to_ingress: 1,
        pad: 0,
    };
    let encoded = out.encode().unwrap();
    assert_eq!(PacketOutHeader::decode(&encoded).unwrap(), out);
    assert!(
        PacketInHeader::decode(&encoded).is_err(),
        "another number of fields"
    );
    let wide = PacketInHeader {
        ingress_port: 1,
        reason: 128,
    };
    assert!(wide.encode().is_err());
}

#[test]
fn clashing_names_are_an_error() {
    let clash = P4INFO.replace("name: \"dst_addr\"", "name: \"VRF\"");
    let index = Index::parse_text(&clash).unwrap();
    let error = codegen::generate(index.p4info()).unwrap_err().to_string();
    assert!(
        error.contains("`vrf` and `VRF` are both called `vrf`"),
        "{error}"
    );
}

proptest! {
    /// What typed entries become is what the rules call canonical, and it comes
    /// back as it was.
    #[test]
    fn typed_entries_are_canonical(
        priority in 1i32..,
        value: u128,
        mask: u128,
        low: u16,
        high: u16,
        kind: Option<u8>,
        drop: bool,
    ) {
        let range = (low, high) != (0, u16::MAX);
        let key = Acl {
            priority,
            src_addr: Ternary { value: value & mask, mask },
            dst_port: range.then_some(Range { low: low.min(high), high: low.max(high) }),
            r#type: kind,
        };
        prop_assume!(key.dst_port != Some(Range { low: 0, high: u16::MAX }));
        let action = if drop {
            AclAction::Drop
        } else {
            AclAction::Count { r#match: vec![1, 2, 3] }
        };
        let entry = key.to_table_entry(&action).unwrap();
        prop_assert_eq!(&check::table_entry(&index(), &entry, Intent::Insert).unwrap(), &entry);
        prop_assert_eq!(Acl::try_from_table_entry(&entry).unwrap(), (key, action));
    }
}
