//! Primitives and expressions that the compiler of the test programs does not
//! write: loops, division of signed numbers, headers by run-time indices,
//! unions, those of P4_14. The programs are put together here.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/tiny.rs"]
mod tiny;

use std::sync::Arc;

use softswitch::{Program, Switch, SwitchConfig};
use tiny::*;

/// Runs an action on a packet of `a`, `b` (8 bits), `c` (16), `s` (signed 32)
/// and four stack elements of 8 bits, and gives back what leaves.
fn run(primitives: &[String], packet: &[u8]) -> Option<Vec<u8>> {
    let json = program(primitives);
    let program = Program::load(json.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{json}"));
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(Arc::new(program));
    switch.ingress(0, packet, 1_000);
    switch.dequeue(0, 1_000).map(|p| p.bytes)
}

/// A packet with these fields.
fn packet(a: u8, b: u8, c: u16, s: i32, stack: [u8; 4]) -> Vec<u8> {
    let mut bytes = vec![a, b];
    bytes.extend(c.to_be_bytes());
    bytes.extend(s.to_be_bytes());
    bytes.extend(stack);
    bytes
}

const STACK: [u8; 4] = [0x11, 0x22, 0x33, 0x44];

#[test]
fn an_action_can_loop() {
    // c = 0; for (b = 1; b <= a; b = b + 1) { c = c + b; }
    let body = [
        assign(&field("h", "c"), &hex(0)),
        assign(&field("h", "b"), &hex(1)),
        call(
            "_jump_if_zero",
            &[
                op("b2d", "null", &op("<=", &field("h", "b"), &field("h", "a"))),
                hex(6),
            ],
        ),
        assign(
            &field("h", "c"),
            &op("+", &field("h", "c"), &field("h", "b")),
        ),
        assign(&field("h", "b"), &op("+", &field("h", "b"), &hex(1))),
        call("_jump", &[hex(2)]),
    ];
    for (count, sum) in [(0, 0), (1, 1), (5, 15), (254, 32_385)] {
        let sent = run(&body, &packet(count, 0, 9, 0, STACK)).unwrap();
        assert_eq!(
            sent,
            packet(count, count.wrapping_add(1), sum, 0, STACK),
            "{count}"
        );
    }
}

#[test]
fn a_conditional_jump_can_go_back() {
    // do { c = c + 1; a = a + 1; } while (!a);
    let body = [
        assign(&field("h", "c"), &op("+", &field("h", "c"), &hex(1))),
        assign(
            &field("h", "a"),
            &op("&", &op("+", &field("h", "a"), &hex(1)), &hex(3)),
        ),
        call("_jump_if_zero", &[field("h", "a"), hex(0)]),
    ];
    let sent = run(&body, &packet(3, 0, 0, 0, STACK)).unwrap();
    assert_eq!(sent, packet(1, 0, 2, 0, STACK));
}

#[test]
fn a_loop_without_end_drops_its_packet_only() {
    let body = [
        call("_jump_if_zero", &[field("h", "a"), hex(2)]),
        call("_jump", &[hex(1)]),
        call("no_op", &[]),
    ];
    let program = Arc::new(Program::load(program(&body).as_bytes()).unwrap());
    let mut switch = Switch::new(SwitchConfig::default());
    switch.install(program);
    switch.ingress(0, &packet(1, 0, 0, 0, STACK), 0);
    assert_eq!(switch.dequeue(0, 0), None);
    assert_eq!(switch.stats().endless_loops, 1);
    switch.ingress(0, &packet(0, 0, 0, 0, STACK), 0);
    assert!(switch.dequeue(0, 0).is_some());
}

#[test]
fn signed_division_rounds_towards_zero() {
    let divide = |how| {
        [assign(
            &field("h", "s"),
            &op(how, &field("h", "s"), &hex_minus(3)),
        )]
    };
    for (how, by) in [
        ("/", [(7, -2), (-7, 2), (-6, 2)]),
        ("%", [(7, 1), (-7, -1), (-6, 0)]),
    ] {
        for (value, result) in by {
            let sent = run(&divide(how), &packet(0, 0, 0, value, STACK)).unwrap();
            assert_eq!(sent, packet(0, 0, 0, result, STACK), "{value} {how} -3");
        }
    }
    let by_zero = [assign(
        &field("h", "s"),
        &op("/", &field("h", "s"), &field("h", "a")),
    )];
    let sent = run(&by_zero, &packet(0, 0, 0, -5, STACK)).unwrap();
    assert_eq!(sent, packet(0, 0, 0, 0, STACK));
}

#[test]
fn wide_signed_division_is_that_of_small_numbers() {
    // (s << 64) / -(5 << 64)
    let wide = |v: &str| op("<<", v, &hex(64));
    let body = [assign(
        &field("h", "s"),
        &op("/", &wide(&field("h", "s")), &wide(&hex_minus(5))),
    )];
    for (value, result) in [(17, -3), (-17, 3), (i32::MIN, i32::MAX / 5)] {
        let sent = run(&body, &packet(0, 0, 0, value, STACK)).unwrap();
        assert_eq!(sent, packet(0, 0, 0, result, STACK), "{value}");
    }
}

#[test]
fn headers_are_copied_and_compared_by_run_time_indices() {
    let at = |index: &str| op("dereference_header_stack", &stack(), index);
    let body = [
        call(
            "assign_header",
            &[at(&field("h", "a")), at(&field("h", "b"))],
        ),
        assign(
            &field("h", "c"),
            &op(
                "b2d",
                "null",
                &op("==", &at(&field("h", "a")), &at(&hex(3))),
            ),
        ),
    ];
    let sent = run(&body, &packet(0, 3, 0, 0, STACK)).unwrap();
    assert_eq!(sent, packet(0, 3, 1, 0, [0x44, 0x22, 0x33, 0x44]));
    let sent = run(&body, &packet(2, 1, 0, 0, STACK)).unwrap();
    assert_eq!(sent, packet(2, 1, 0, 0, [0x11, 0x22, 0x22, 0x44]));
    // Beyond the stack: nothing is copied.
    let sent = run(&body, &packet(9, 1, 0, 0, STACK)).unwrap();
    assert_eq!(sent, packet(9, 1, 0, 0, STACK));
}

#[test]
fn stacks_push_and_pop() {
    let body = |what, count| [call(what, &[stack(), hex(count)])];
    let sent = run(&body("push", 1), &packet(0, 0, 0, 0, STACK)).unwrap();
    assert_eq!(
        sent,
        [&packet(0, 0, 0, 0, STACK)[..8], &[0x11, 0x22, 0x33]].concat()
    );
    let sent = run(&body("pop", 3), &packet(0, 0, 0, 0, STACK)).unwrap();
    assert_eq!(sent, [&packet(0, 0, 0, 0, STACK)[..8], &[0x44]].concat());
    let sent = run(&body("pop", 9), &packet(0, 0, 0, 0, STACK)).unwrap();
    assert_eq!(sent, &packet(0, 0, 0, 0, STACK)[..8]);
}

#[test]
fn a_union_has_at_most_one_valid_member() {
    let union = |name: &str| format!(r#"{{"type":"header_union","value":"{name}"}}"#);
    let valid = |name: &str| op("b2d", "null", &op("valid_union", "null", &union(name)));
    let body = [
        call("add_header", &[header("u.x")]),
        assign(&field("u.x", "v"), &hex(0x55)),
        call("add_header", &[header("v.y")]),
        assign(&field("v.y", "v"), &hex(0x6677)),
        assign(
            &field("h", "b"),
            &op("b2d", "null", &op("==", &union("u"), &union("v"))),
        ),
        // The other member of v becomes invalid by this.
        call("assign_union", &[union("v"), union("u")]),
        assign(
            &field("h", "a"),
            &op("b2d", "null", &op("==", &union("u"), &union("v"))),
        ),
        call("remove_header", &[header("u.x")]),
        assign(
            &field("h", "c"),
            &op("+", &op("<<", &valid("v"), &hex(8)), &valid("u")),
        ),
    ];
    let sent = run(&body, &packet(9, 9, 9, 0, STACK)).unwrap();
    assert_eq!(sent, [&packet(1, 0, 0x100, 0, STACK)[..], &[0x55]].concat());
}

#[test]
fn p4_14_primitives_compute() {
    let (a, b, c) = (field("h", "a"), field("h", "b"), field("h", "c"));
    for (what, operands, result) in [
        ("add", vec![c.clone(), a.clone(), b.clone()], 0x13),
        ("subtract", vec![c.clone(), b.clone(), a.clone()], 0xfff3),
        ("bit_and", vec![c.clone(), a.clone(), b.clone()], 0),
        ("bit_or", vec![c.clone(), a.clone(), b.clone()], 0x13),
        ("bit_xor", vec![c.clone(), a.clone(), hex(0xff)], 0xef),
        ("shift_left", vec![c.clone(), a.clone(), b.clone()], 0x80),
        ("shift_right", vec![c.clone(), a.clone(), b.clone()], 2),
        ("add_to_field", vec![c.clone(), a.clone()], 0x1f),
        ("subtract_from_field", vec![c.clone(), a.clone()], 0xffff),
    ] {
        let sent = run(&[call(what, &operands)], &packet(0x10, 3, 15, 0, STACK)).unwrap();
        assert_eq!(sent, packet(0x10, 3, result, 0, STACK), "{what}");
    }
}

#[test]
fn shifts_by_the_width_and_more_leave_nothing() {
    let c = field("h", "c");
    for (how, value, by, result) in [
        ("<<", 0xffff, 16, 0),
        (">>", 0xffff, 16, 0),
        (">>", 0xffff, 255, 0),
        ("<<", 1, 15, 0x8000),
    ] {
        let body = [assign(&c, &op(how, &c, &field("h", "a")))];
        let sent = run(&body, &packet(by, 0, value, 0, STACK)).unwrap();
        assert_eq!(
            sent,
            packet(by, 0, result, 0, STACK),
            "{value:#x} {how} {by}"
        );
    }
    let s = field("h", "s");
    let body = [assign(&s, &op(">>", &s, &field("h", "a")))];
    let sent = run(&body, &packet(200, 0, 0, -5, STACK)).unwrap();
    assert_eq!(sent, packet(200, 0, 0, -1, STACK));
}

#[test]
fn a_select_without_match_is_an_error() {
    // The parser takes the stack if `a` is below 0x80, and has no default.
    let body = [assign(
        &field("h", "b"),
        &field("standard_metadata", "parser_error"),
    )];
    let sent = run(&body, &packet(0x80, 0, 0, 0, STACK)).unwrap();
    assert_eq!(sent, packet(0x80, 2, 0, 0, STACK));
    let sent = run(&body, &packet(0x7f, 7, 0, 0, STACK)).unwrap();
    assert_eq!(sent, packet(0x7f, 0, 0, 0, STACK));
    // Too short for the stack, for the header, and empty.
    let sent = run(&body, &packet(1, 0, 0, 0, STACK)[..9]).unwrap();
    assert_eq!(sent, packet(1, 1, 0, 0, STACK)[..9]);
    assert_eq!(run(&body, &[1, 2, 3]).unwrap(), [1, 2, 3]);
    assert!(run(&body, &[]).unwrap().is_empty());
}
