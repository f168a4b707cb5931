//! Which words an instruction reads and writes.

use crate::hash::Algorithm;
use crate::program::Program;
use crate::program::calc::{Calculation, Input};
use crate::program::code::{Indexed, Ins, Slot, limbs};
use crate::program::layout::StackLayout;

/// What happens to some words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// Read, but only while the flag is set of the header that the words belong to: then all of
    /// its words have been written.
    Guarded,
    /// Written in any case.
    Write,
    /// Written or left alone.
    Maybe,
}
use Access::{Guarded, Maybe, Read, Write};

/// Takes an access, the first word and how many they are.
pub(super) type Note<'n> = dyn FnMut(Access, Slot, usize) + 'n;

fn at(number: u16) -> usize {
    usize::from(number)
}

/// Tells what an instruction does to the frame; a table's own part only, not its actions'.
pub(super) fn accesses(program: &Program, ins: Ins, note: &mut Note<'_>) {
    if one_word(ins, note) || several_words(ins, note) || externs(program, ins, note) {
        return;
    }
    headers(program, ins, note);
}

/// Arithmetic on single words, and jumps.
fn one_word(ins: Ins, note: &mut Note<'_>) -> bool {
    use Ins::*;
    match ins {
        Mov { d, a }
        | Mask { d, a, .. }
        | Sext { d, a, .. }
        | Not { d, a, .. }
        | ShlImm { d, a, .. }
        | Slice { d, a, .. }
        | ShrSImm { d, a, .. }
        | NonZero { d, a }
        | NotBool { d, a }
        | UsatU { d, a, .. }
        | UsatS { d, a, .. }
        | SatS { d, a, .. } => {
            note(Read, a, 1);
            note(Write, d, 1);
        }
        Add { d, a, b, .. }
        | Sub { d, a, b, .. }
        | Mul { d, a, b, .. }
        | DivU { d, a, b }
        | RemU { d, a, b }
        | DivS { d, a, b }
        | RemS { d, a, b }
        | And { d, a, b }
        | Or { d, a, b }
        | Xor { d, a, b }
        | Shl { d, a, b, .. }
        | ShrU { d, a, b }
        | ShrS { d, a, b }
        | Eq { d, a, b }
        | Ne { d, a, b }
        | LtU { d, a, b }
        | LeU { d, a, b }
        | LtS { d, a, b }
        | LeS { d, a, b } => {
            note(Read, a, 1);
            note(Read, b, 1);
            note(Write, d, 1);
        }
        JumpIfZero { a, .. } | JumpIfNotZero { a, .. } | JumpIs { a, .. } | JumpIsNot { a, .. } => {
            note(Read, a, 1);
        }
        JumpEq { a, b, .. }
        | JumpNe { a, b, .. }
        | JumpLtU { a, b, .. }
        | JumpLeU { a, b, .. }
        | JumpLtS { a, b, .. }
        | JumpLeS { a, b, .. } => {
            note(Read, a, 1);
            note(Read, b, 1);
        }
        Clear { d, n } => note(Write, d, at(n)),
        Jump { .. } | Loop { .. } | Goto { .. } | Return | Halt | Exit | Call { .. } => {}
        _ => return false,
    }
    true
}

fn several_words(ins: Ins, note: &mut Note<'_>) -> bool {
    use Ins::*;
    let n = |n: u8| usize::from(n);
    match ins {
        WMov { n: w, d, a }
        | WMask { n: w, d, a, .. }
        | WSext { n: w, d, a, .. }
        | WNot { n: w, d, a }
        | WUsat { n: w, d, a, .. }
        | WSat { n: w, d, a, .. }
        | AssignVl { d, a, n: w } => {
            note(Read, a, n(w));
            note(Write, d, n(w));
        }
        WExt { from, to, d, a, .. } => {
            note(Read, a, n(from));
            note(Write, d, n(to));
        }
        WAdd { n: w, d, a, b }
        | WSub { n: w, d, a, b }
        | WMul { n: w, d, a, b }
        | WDivU { n: w, d, a, b }
        | WRemU { n: w, d, a, b }
        | WDivS { n: w, d, a, b }
        | WRemS { n: w, d, a, b }
        | WAnd { n: w, d, a, b }
        | WOr { n: w, d, a, b }
        | WXor { n: w, d, a, b } => {
            note(Read, a, n(w));
            note(Read, b, n(w));
            note(Write, d, n(w));
        }
        WShl { n: w, d, a, b } | WShrU { n: w, d, a, b } | WShrS { n: w, d, a, b } => {
            note(Read, a, n(w));
            note(Read, b, 1);
            note(Write, d, n(w));
        }
        WEq { n: w, d, a, b }
        | WNe { n: w, d, a, b }
        | WLt { n: w, d, a, b }
        | WLe { n: w, d, a, b } => {
            note(Read, a, n(w));
            note(Read, b, n(w));
            note(Write, d, 1);
        }
        WNonZero { n: w, d, a } => {
            note(Read, a, n(w));
            note(Write, d, 1);
        }
        _ => return false,
    }
    true
}

fn externs(program: &Program, ins: Ins, note: &mut Note<'_>) -> bool {
    use Ins::*;
    let parts = &program.parts;
    match ins {
        RegisterRead {
            d, register, index, ..
        } => {
            note(Read, index, 1);
            // An index beyond the array leaves the words alone.
            note(Maybe, d, program.registers()[at(register)].limbs());
        }
        RegisterWrite {
            register, index, a, ..
        } => {
            note(Read, index, 1);
            note(Read, a, program.registers()[at(register)].limbs());
        }
        Count { index, .. } => note(Read, index, 1),
        Meter { d, index, .. } => {
            note(Read, index, 1);
            note(Maybe, d, 1);
        }
        Hash { d, x } => {
            let call = &parts.hashes[at(x)];
            input(program, &parts.calculations[at(call.calculation)], note);
            note(Read, call.base, 1);
            note(Read, call.max, 1);
            note(Write, d, 1);
        }
        Random { d, lo, hi } => {
            note(Read, lo, 1);
            note(Read, hi, 1);
            note(Maybe, d, 1);
        }
        Clone { session, .. } => note(Read, session, 1),
        Digest { .. } | Resubmit { .. } | Recirculate { .. } => {}
        Truncate { a } | Assert { a } => note(Read, a, 1),
        MarkToDrop => {
            note(Write, program.standard.egress_spec, 1);
            if let Some(group) = program.standard.mcast_grp {
                note(Write, group, 1);
            }
        }
        Log { x } => {
            for &(slot, n) in &parts.logs[at(x)].args {
                note(Read, slot, usize::from(n));
            }
        }
        VerifyChecksum { x } | UpdateChecksum { x } => {
            let checksum = &parts.checksums[at(x)];
            input(program, &parts.calculations[at(checksum.calculation)], note);
            match ins {
                UpdateChecksum { .. } => note(Write, checksum.slot, 1),
                _ => note(Read, checksum.slot, 1),
            }
        }
        Apply { table } => key(program, table, note),
        Select { select } => {
            for part in &parts.plain.selects[at(select)].parts {
                note(Read, part.slot, usize::from(part.limbs));
            }
        }
        Advance { bits } => note(Read, bits, 1),
        Lookahead { d, width, .. } => note(Maybe, d, limbs(width.into())),
        Verify { cond, error } => {
            note(Read, cond, 1);
            note(Read, error, 1);
        }
        _ => return false,
    }
    true
}

/// What a lookup reads, and the colour of a direct meter.
fn key(program: &Program, table: u16, note: &mut Note<'_>) {
    let def = &program.parts.tables[at(table)];
    for part in &def.key_parts {
        let is_always_there = usize::from(part.valid) >= program.parts.constants_base;
        note(Read, part.valid, 1);
        note(if is_always_there { Read } else { Guarded }, part.slot, 1);
    }
    let selector = def
        .profile
        .and_then(|id| program.parts.selectors[id.index()].as_ref());
    if let Some(selector) = selector {
        input(program, selector, note);
    }
    if let Some((slot, _)) = def.meter_target {
        note(Maybe, slot, 1);
    }
}

fn input(program: &Program, calculation: &Calculation, note: &mut Note<'_>) {
    for input in &calculation.input {
        match input {
            Input::Field { slot, bits, valid } => {
                let access = flagged(*valid, note);
                note(access, *slot, limbs(*bits));
            }
            Input::Varbit { slot, valid } => {
                note(Read, *valid, 1);
                // Its length is in the word before, and says how many words are read.
                let fields = program.headers.iter().flat_map(|h| &h.fields);
                let words = fields.filter(|f| f.slot == *slot).map(|f| f.limbs()).max();
                note(Guarded, slot - 1, 1 + words.unwrap_or(0));
            }
            Input::Constant { .. } => {}
            Input::Packed { terms, valid, .. } => {
                let access = flagged(*valid, note);
                terms.iter().for_each(|term| note(access, term.slot, 1));
            }
        }
    }
}

fn flagged(valid: Option<Slot>, note: &mut Note<'_>) -> Access {
    match valid {
        Some(valid) => {
            note(Read, valid, 1);
            Guarded
        }
        None => Read,
    }
}

/// All words of a header, and its flag.
fn whole(program: &Program, number: u16, access: Access, note: &mut Note<'_>) {
    let header = &program.headers[at(number)];
    note(access, header.valid, 1);
    if access == Maybe {
        note(Maybe, header.first, at(header.words));
        for &sibling in &header.siblings {
            note(Maybe, program.headers[at(sibling)].valid, 1);
        }
        return;
    }
    let fields = if header.metadata { Read } else { Guarded };
    note(fields, header.first, at(header.words));
}

/// What setting a header valid or invalid reads: its flag and how long it is.
fn length(program: &Program, number: u16, note: &mut Note<'_>) {
    let header = &program.headers[at(number)];
    note(Read, header.valid, 1);
    if let Some(field) = header.varbit {
        note(Guarded, header.fields[field].slot - 1, 1);
    }
}

/// All headers that an index may lead to.
fn elements(program: &Program, element: Indexed, access: Access, note: &mut Note<'_>) {
    // Flags are numbered like headers.
    for i in 0..element.count {
        whole(program, element.base + element.stride * i, access, note);
    }
}

fn stack(program: &Program, stack: &StackLayout, access: Access, note: &mut Note<'_>) {
    note(access, stack.next, 1);
    for i in 0..stack.depth * stack.members {
        whole(program, stack.first + i, access, note);
    }
}

fn headers(program: &Program, ins: Ins, note: &mut Note<'_>) {
    use Ins::*;
    let indexed = |x: u16| program.parts.indexed[at(x)];
    match ins {
        LoadAt { d, index, x } => {
            let x = indexed(x);
            note(Read, index, 1);
            for i in 0..x.count {
                note(Read, x.base + x.stride * i, usize::from(x.limbs));
            }
            note(Write, d, usize::from(x.limbs));
        }
        StoreAt { index, a, x } => {
            let x = indexed(x);
            note(Read, index, 1);
            note(Read, a, usize::from(x.limbs));
            for i in 0..x.count {
                note(Maybe, x.base + x.stride * i, usize::from(x.limbs));
            }
        }
        AddHeader { h } | RemoveHeader { h } => {
            length(program, h, note);
            whole(program, h, Maybe, note);
        }
        CopyHeader { d, s } => {
            whole(program, s, Read, note);
            whole(program, d, Maybe, note);
        }
        HeaderEq { d, a, b } => {
            whole(program, a, Read, note);
            whole(program, b, Read, note);
            note(Write, d, 1);
        }
        AddHeaderAt { x, index } | RemoveHeaderAt { x, index } => {
            let x = indexed(x);
            note(Read, index, 1);
            (0..x.count).for_each(|i| length(program, x.base + x.stride * i, note));
            elements(program, x, Maybe, note);
        }
        CopyFromHeaderAt { d, x, index } => {
            note(Read, index, 1);
            elements(program, indexed(x), Read, note);
            whole(program, d, Maybe, note);
        }
        CopyToHeaderAt { x, s, index } => {
            note(Read, index, 1);
            whole(program, s, Read, note);
            elements(program, indexed(x), Maybe, note);
        }
        HeaderNumber { d, index, .. } => {
            note(Read, index, 1);
            note(Write, d, 1);
        }
        Push { stack: s, count } | Pop { stack: s, count } => {
            note(Read, count, 1);
            stack(program, &program.stacks[at(s)], Read, note);
            stack(program, &program.stacks[at(s)], Maybe, note);
        }
        Extract { h } | ExtractVl { h, .. } => {
            if let ExtractVl { bits, .. } = ins {
                note(Read, bits, 1);
            }
            whole(program, h, Maybe, note);
        }
        ExtractNext { stack: s }
        | ExtractUnionNext { stack: s, .. }
        | ExtractNextVl { stack: s, .. }
        | ExtractUnionNextVl { stack: s, .. } => {
            if let ExtractNextVl { bits, .. } | ExtractUnionNextVl { bits, .. } = ins {
                note(Read, bits, 1);
            }
            note(Read, program.stacks[at(s)].next, 1);
            stack(program, &program.stacks[at(s)], Maybe, note);
        }
        // Headers by number: any of them.
        CopyNumbered { .. } | NumberedEq { .. } => anything(program, ins, note),
        other => unreachable!("{other:?} is told of elsewhere"),
    }
}

fn anything(program: &Program, ins: Ins, note: &mut Note<'_>) {
    if let Ins::CopyNumbered { d: a, s: b } | Ins::NumberedEq { a, b, .. } = ins {
        note(Read, a, 1);
        note(Read, b, 1);
    }
    note(Read, 0, program.packet_words);
    match ins {
        Ins::NumberedEq { d, .. } => note(Write, d, 1),
        _ => note(Maybe, 0, program.packet_words),
    }
}

/// Whether an instruction does nothing but write words, so that nobody misses it when nobody
/// reads them.
pub(super) fn only_writes(program: &Program, ins: Ins) -> bool {
    use Ins::*;
    match ins {
        Hash { x, .. } => {
            let calculation = program.parts.hashes[at(x)].calculation;
            program.parts.calculations[at(calculation)].algorithm != Algorithm::Random
        }
        RegisterRead { .. } | LoadAt { .. } | HeaderEq { .. } | HeaderNumber { .. } => true,
        Jump { .. } | Loop { .. } | Goto { .. } | Return | Halt | Exit | Call { .. } => false,
        Lookahead { .. } | AssignVl { .. } => false,
        JumpIfZero { .. } | JumpIfNotZero { .. } | JumpIs { .. } | JumpIsNot { .. } => false,
        JumpEq { .. }
        | JumpNe { .. }
        | JumpLtU { .. }
        | JumpLeU { .. }
        | JumpLtS { .. }
        | JumpLeS { .. } => false,
        other => one_word(other, &mut |_, _, _| {}) || several_words(other, &mut |_, _, _| {}),
    }
}

/// Whether the parser may end at this instruction.
pub(super) fn may_end(ins: Ins) -> bool {
    use Ins::*;
    matches!(
        ins,
        Extract { .. }
            | ExtractVl { .. }
            | ExtractNext { .. }
            | ExtractNextVl { .. }
            | ExtractUnionNext { .. }
            | ExtractUnionNextVl { .. }
            | Advance { .. }
            | Lookahead { .. }
            | Verify { .. }
            | Select { .. }
            | Goto { .. }
    )
}
