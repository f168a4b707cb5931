//! The compiled form: instructions over a frame of 64-bit words.
//!
//! The frame holds, in this order: the packet's words (validity flags, stack
//! counters, metadata, headers), the parameters of the running action,
//! temporaries, constants. Numbers of up to 64 bits take one word: unsigned
//! ones zero-extended, signed ones sign-extended. Wider ones take several,
//! least significant first.

pub(crate) use super::operands::{HashCall, Indexed, LogCall};

/// Index of a word in the frame.
pub(crate) type Slot = u16;
/// Index of an instruction.
pub(crate) type Pc = u32;

/// One instruction. `d` is written; `a` and `b` are read. `bits` truncates the
/// result to its low 1 to 64 bits. In wide instructions `n` is the length of
/// all operands in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ins {
    // One word.
    Mov {
        d: Slot,
        a: Slot,
    },
    Mask {
        d: Slot,
        a: Slot,
        bits: u8,
    },
    Sext {
        d: Slot,
        a: Slot,
        bits: u8,
    },
    Add {
        d: Slot,
        a: Slot,
        b: Slot,
        bits: u8,
    },
    Sub {
        d: Slot,
        a: Slot,
        b: Slot,
        bits: u8,
    },
    Mul {
        d: Slot,
        a: Slot,
        b: Slot,
        bits: u8,
    },
    DivU {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    RemU {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Rounds towards zero.
    DivS {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Has the sign of `a`.
    RemS {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    And {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Or {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Xor {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Not {
        d: Slot,
        a: Slot,
        bits: u8,
    },
    Shl {
        d: Slot,
        a: Slot,
        b: Slot,
        bits: u8,
    },
    ShlImm {
        d: Slot,
        a: Slot,
        by: u8,
        bits: u8,
    },
    ShrU {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    ShrS {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Shift right, then truncate: a slice.
    Slice {
        d: Slot,
        a: Slot,
        by: u8,
        bits: u8,
    },
    ShrSImm {
        d: Slot,
        a: Slot,
        by: u8,
    },
    Eq {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Ne {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    LtU {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    LeU {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    LtS {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    LeS {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    NonZero {
        d: Slot,
        a: Slot,
    },
    NotBool {
        d: Slot,
        a: Slot,
    },
    UsatU {
        d: Slot,
        a: Slot,
        bits: u8,
    },
    UsatS {
        d: Slot,
        a: Slot,
        bits: u8,
    },
    SatS {
        d: Slot,
        a: Slot,
        bits: u8,
    },

    // Several words.
    /// Makes `n` words zero.
    Clear {
        d: Slot,
        n: u16,
    },
    WMov {
        n: u8,
        d: Slot,
        a: Slot,
    },
    /// Truncates to the low `bits` of `n` words.
    WMask {
        n: u8,
        bits: u16,
        d: Slot,
        a: Slot,
    },
    WSext {
        n: u8,
        bits: u16,
        d: Slot,
        a: Slot,
    },
    /// Extends `from` words to `to`; `sign` repeats the sign bit.
    WExt {
        from: u8,
        to: u8,
        sign: bool,
        d: Slot,
        a: Slot,
    },
    WAdd {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WSub {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WMul {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WDivU {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WRemU {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WDivS {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WRemS {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WAnd {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WOr {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WXor {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WNot {
        n: u8,
        d: Slot,
        a: Slot,
    },
    /// The amount `b` is one unsigned word.
    WShl {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WShrU {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WShrS {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WEq {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WNe {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Signed comparison.
    WLt {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WLe {
        n: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    WNonZero {
        n: u8,
        d: Slot,
        a: Slot,
    },
    /// Saturates signed `n` words to unsigned `bits`.
    WUsat {
        n: u8,
        bits: u16,
        d: Slot,
        a: Slot,
    },
    /// Saturates signed `n` words to signed `bits`.
    WSat {
        n: u8,
        bits: u16,
        d: Slot,
        a: Slot,
    },

    // Elements of arrays of headers: `x` names an [`Indexed`].
    LoadAt {
        d: Slot,
        index: Slot,
        x: u16,
    },
    StoreAt {
        index: Slot,
        a: Slot,
        x: u16,
    },

    // Control.
    Jump {
        to: Pc,
    },
    /// A jump backwards in an action; counted, to end endless loops.
    Loop {
        to: Pc,
    },
    JumpIfZero {
        a: Slot,
        to: Pc,
    },
    JumpIfNotZero {
        a: Slot,
        to: Pc,
    },
    JumpEq {
        a: Slot,
        b: Slot,
        to: u16,
    },
    JumpNe {
        a: Slot,
        b: Slot,
        to: u16,
    },
    JumpLtU {
        a: Slot,
        b: Slot,
        to: u16,
    },
    JumpLeU {
        a: Slot,
        b: Slot,
        to: u16,
    },
    JumpLtS {
        a: Slot,
        b: Slot,
        to: u16,
    },
    JumpLeS {
        a: Slot,
        b: Slot,
        to: u16,
    },
    /// If the word is `value`.
    JumpIs {
        a: Slot,
        value: u16,
        to: u16,
    },
    /// Unless the word is `value`.
    JumpIsNot {
        a: Slot,
        value: u16,
        to: u16,
    },
    /// Looks the table up and runs the action; continues at the table's next.
    Apply {
        table: u16,
    },
    /// Runs an action and comes back.
    Call {
        action: u16,
    },
    /// Ends an action.
    Return,
    /// Ends a pipeline or the parser.
    Halt,

    // Headers. `h` and `u` index the program's headers.
    AddHeader {
        h: u16,
    },
    RemoveHeader {
        h: u16,
    },
    CopyHeader {
        d: u16,
        s: u16,
    },
    HeaderEq {
        d: Slot,
        a: u16,
        b: u16,
    },
    // Of elements of stacks: `x` names the [`Indexed`] of their validity.
    AddHeaderAt {
        x: u16,
        index: Slot,
    },
    RemoveHeaderAt {
        x: u16,
        index: Slot,
    },
    CopyFromHeaderAt {
        d: u16,
        x: u16,
        index: Slot,
    },
    CopyToHeaderAt {
        x: u16,
        s: u16,
        index: Slot,
    },
    /// The number of the header at an index; all ones beyond the stack.
    HeaderNumber {
        d: Slot,
        x: u16,
        index: Slot,
    },
    /// Copies one header to another; `d` and `s` hold their numbers.
    CopyNumbered {
        d: Slot,
        s: Slot,
    },
    /// Compares headers; `a` and `b` hold their numbers.
    NumberedEq {
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Push {
        stack: u16,
        count: Slot,
    },
    Pop {
        stack: u16,
        count: Slot,
    },
    AssignVl {
        d: Slot,
        a: Slot,
        n: u8,
    },

    // Parser.
    Extract {
        h: u16,
    },
    ExtractVl {
        h: u16,
        bits: Slot,
    },
    ExtractNext {
        stack: u16,
    },
    ExtractNextVl {
        stack: u16,
        bits: Slot,
    },
    ExtractUnionNext {
        stack: u16,
        member: u16,
    },
    ExtractUnionNextVl {
        stack: u16,
        member: u8,
        bits: Slot,
    },
    Advance {
        bits: Slot,
    },
    /// `width` bits, `offset` bits ahead of the cursor.
    Lookahead {
        d: Slot,
        offset: u16,
        width: u16,
    },
    Verify {
        cond: Slot,
        error: Slot,
    },
    Select {
        select: u16,
    },
    /// To the next parser state; counted, like `Select`, to end endless loops.
    Goto {
        to: Pc,
    },

    // Externs.
    RegisterRead {
        d: Slot,
        register: u16,
        index: Slot,
        /// A write is to follow that belongs to it: nobody else may come between.
        hold: bool,
    },
    RegisterWrite {
        register: u16,
        index: Slot,
        a: Slot,
        /// No more writes follow that belong to what was read before.
        free: bool,
    },
    Count {
        counter: u16,
        index: Slot,
    },
    Meter {
        d: Slot,
        meter: u16,
        index: Slot,
    },
    /// `d = base + hash % max`; `d` is one word, not truncated.
    Hash {
        d: Slot,
        x: u16,
    },
    Random {
        d: Slot,
        lo: Slot,
        hi: Slot,
    },
    Digest {
        digest: u16,
    },
    Clone {
        session: Slot,
        list: u16,
    },
    Resubmit {
        list: u16,
    },
    Recirculate {
        list: u16,
    },
    Truncate {
        a: Slot,
    },
    MarkToDrop,
    Assert {
        a: Slot,
    },
    Log {
        x: u16,
    },
    Exit,

    // Checksums.
    VerifyChecksum {
        x: u16,
    },
    UpdateChecksum {
        x: u16,
    },
}

const _: () = assert!(size_of::<Ins>() == 8);

/// All ones in the low `bits` (1 to 64).
#[inline(always)]
pub(crate) fn ones(bits: u8) -> u64 {
    u64::MAX >> ((64 - u32::from(bits)) % 64)
}

/// Words needed for so many bits.
pub(crate) fn limbs(bits: u32) -> usize {
    bits.div_ceil(64).max(1) as usize
}
