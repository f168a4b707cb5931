//! What each word of a packet is called.

use crate::program::Program;

/// What a word of the frame holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// The validity of a header.
    Valid(u16),
    /// A part of a field of a header.
    Field(u16, u16),
    /// Nothing that has a name.
    Other,
}

/// The owner of each of a packet's words.
pub(super) fn words(program: &Program) -> Vec<Word> {
    let mut words = vec![Word::Other; program.packet_words];
    for (number, header) in program.headers.iter().enumerate() {
        let number = number as u16;
        words[usize::from(header.valid)] = Word::Valid(number);
        for (index, field) in header.fields.iter().enumerate() {
            let at = usize::from(field.slot);
            words[at..at + field.limbs()].fill(Word::Field(number, index as u16));
        }
    }
    words
}

/// `header.field`.
pub(super) fn field(program: &Program, header: u16, field: u16) -> String {
    let header = &program.headers[usize::from(header)];
    format!("{}.{}", header.name, header.fields[usize::from(field)].name)
}

/// A field's value among some words.
pub(super) fn value(program: &Program, words: &[u64], header: u16, field: u16) -> String {
    let field = &program.headers[usize::from(header)].fields[usize::from(field)];
    let at = usize::from(field.slot);
    let mut limbs = words[at..at + field.limbs()].to_vec();
    if let (Some(top), rest @ 1..) = (limbs.last_mut(), field.bits % 64) {
        *top &= crate::program::code::ones(rest as u8);
    }
    hex(&limbs)
}

/// A number of several words.
pub(super) fn hex(limbs: &[u64]) -> String {
    crate::Value::from_limbs(limbs).to_string()
}
