//! Validity of headers, copies, and stacks.

use crate::exec::bits;
use crate::exec::packet::Inner;
use crate::exec::{Frame, at};
use crate::program::Program;
use crate::program::code::Indexed;
use crate::program::layout::{HeaderLayout, StackLayout};

fn layout(program: &Program, header: u16) -> &HeaderLayout {
    &program.headers[usize::from(header)]
}

fn words(header: &HeaderLayout) -> std::ops::Range<usize> {
    at(header.first)..at(header.first) + usize::from(header.words)
}

fn is_valid(frame: &Frame, header: &HeaderLayout) -> bool {
    frame[at(header.valid)] != 0
}

/// Marks a header valid, and the other members of its union invalid.
#[inline]
pub(super) fn validate(program: &Program, frame: &mut Frame, header: u16) {
    let header = layout(program, header);
    frame[at(header.valid)] = 1;
    for &sibling in &header.siblings {
        frame[at(layout(program, sibling).valid)] = 0;
    }
}

/// `setValid`: the fields of a header that was not valid become zero.
pub(super) fn add(program: &Program, frame: &mut Frame, packet: &mut Inner, number: u16) {
    let header = layout(program, number);
    if is_valid(frame, header) {
        return;
    }
    frame[words(header)].fill(0);
    packet.length += bits::header_bytes(frame, header) as u64;
    validate(program, frame, number);
}

/// `setInvalid`.
pub(super) fn remove(program: &Program, frame: &mut Frame, packet: &mut Inner, number: u16) {
    let header = layout(program, number);
    if is_valid(frame, header) {
        let bytes = bits::header_bytes(frame, header) as u64;
        packet.length = packet.length.saturating_sub(bytes);
        invalidate(frame, header);
    }
}

fn invalidate(frame: &mut Frame, header: &HeaderLayout) {
    frame[at(header.valid)] = 0;
    frame[words(header)].fill(0);
}

/// Assigns one header to another of the same type.
pub(super) fn copy(program: &Program, frame: &mut Frame, to: u16, from: u16) {
    let (to_layout, from_layout) = (layout(program, to), layout(program, from));
    if !is_valid(frame, from_layout) && !from_layout.metadata {
        return invalidate(frame, to_layout);
    }
    let source = words(from_layout);
    let count = source.len().min(usize::from(to_layout.words));
    frame.copy_within(source.start..source.start + count, at(to_layout.first));
    validate(program, frame, to);
}

/// Two headers are equal when both are invalid, or both valid with the same
/// fields.
pub(super) fn equal(program: &Program, frame: &Frame, a: u16, b: u16) -> bool {
    let (a, b) = (layout(program, a), layout(program, b));
    match (is_valid(frame, a), is_valid(frame, b)) {
        (true, true) => frame[words(a)] == frame[words(b)],
        (false, false) => true,
        _ => false,
    }
}

/// The header number that an [`Indexed`] of validity flags stands for at an
/// index; `None` beyond the stack.
pub(super) fn element(
    program: &Program,
    frame: &Frame,
    first_valid: Indexed,
    index: u16,
) -> Option<u16> {
    let index = frame[at(index)];
    if index >= u64::from(first_valid.count) {
        return None;
    }
    // Flags are numbered like headers.
    let number = first_valid.base + first_valid.stride * index as u16;
    debug_assert_eq!(layout(program, number).valid, number);
    Some(number)
}

/// Moves the elements of a stack up by `count` and makes room in front.
pub(super) fn push(program: &Program, frame: &mut Frame, stack: &StackLayout, count: u64) {
    let depth = u64::from(stack.depth);
    let count = count.min(depth);
    let next = frame[at(stack.next)];
    frame[at(stack.next)] = (next + count).min(depth);
    for i in (count..depth).rev() {
        for m in 0..stack.members {
            let header = |i: u64| stack.first + i as u16 * stack.members + m;
            copy(program, frame, header(i), header(i - count));
        }
    }
    for i in 0..count as u16 * stack.members {
        invalidate(frame, layout(program, stack.first + i));
    }
}

/// Moves the elements of a stack down by `count`.
pub(super) fn pop(program: &Program, frame: &mut Frame, stack: &StackLayout, count: u64) {
    let depth = u64::from(stack.depth);
    let count = count.min(depth);
    let next = frame[at(stack.next)];
    frame[at(stack.next)] = next.saturating_sub(count);
    for i in 0..depth - count {
        for m in 0..stack.members {
            let header = |i: u64| stack.first + i as u16 * stack.members + m;
            copy(program, frame, header(i), header(i + count));
        }
    }
    for i in (depth - count) as u16 * stack.members..stack.depth * stack.members {
        invalidate(frame, layout(program, stack.first + i));
    }
}
