//! Fields into messages and back.

use super::{Bits, Error, Lpm, Range, Ternary};
use crate::bytes;
use crate::v1::{
    Action, FieldMatch, PacketMetadata, TableAction, TableEntry, action, field_match, table_action,
};
use field_match::FieldMatchType as Match;

fn encode<T: Bits>(
    of: &'static str,
    field: &'static str,
    width: u32,
    value: &T,
) -> Result<Vec<u8>, Error> {
    decode_bytes(of, field, width, &value.to_bytes()).map(<[u8]>::to_vec)
}

fn decode_bytes<'v>(
    of: &'static str,
    field: &'static str,
    width: u32,
    value: &'v [u8],
) -> Result<&'v [u8], Error> {
    bytes::fit(value, width).map_err(|source| Error::Value { of, field, source })
}

/// Collects the fields of a key.
#[derive(Debug)]
pub struct MatchWriter {
    of: &'static str,
    fields: Vec<FieldMatch>,
    priority: i32,
}

impl MatchWriter {
    /// For a key of the table of this name.
    #[must_use]
    pub fn new(of: &'static str) -> Self {
        MatchWriter {
            of,
            fields: Vec::new(),
            priority: 0,
        }
    }

    pub(super) fn into_entry(self, table_id: u32) -> TableEntry {
        TableEntry {
            table_id,
            r#match: self.fields,
            priority: self.priority,
            ..Default::default()
        }
    }

    fn push(&mut self, field_id: u32, matched: Match) {
        self.fields.push(FieldMatch {
            field_id,
            field_match_type: Some(matched),
        });
    }

    fn field_error(&self, field: &'static str, what: &'static str) -> Error {
        let of = self.of;
        Error::Field { of, field, what }
    }

    /// Adds a field that matches exactly.
    ///
    /// # Errors
    /// When the value does not fit; so for the others.
    pub fn exact<T: Bits>(
        &mut self,
        id: u32,
        field: &'static str,
        width: u32,
        value: &T,
    ) -> Result<(), Error> {
        let value = encode(self.of, field, width, value)?;
        self.push(id, Match::Exact(field_match::Exact { value }));
        Ok(())
    }

    /// Adds a prefix, unless it is empty.
    ///
    /// # Errors
    /// When the value does not fit, or has bits beyond the prefix.
    pub fn lpm<T: Bits>(
        &mut self,
        id: u32,
        field: &'static str,
        width: u32,
        lpm: &Lpm<T>,
    ) -> Result<(), Error> {
        let value = encode(self.of, field, width, &lpm.value)?;
        if lpm.prefix_len > width {
            return Err(self.field_error(field, "the prefix is longer than the field"));
        }
        if !bytes::is_masked(&value, &bytes::prefix_mask(width, lpm.prefix_len)) {
            return Err(self.field_error(field, "the value has ones beyond the prefix"));
        }
        if lpm.prefix_len > 0 {
            let prefix_len = lpm.prefix_len as i32; // at most the width, an i32
            self.push(id, Match::Lpm(field_match::Lpm { value, prefix_len }));
        }
        Ok(())
    }

    /// Adds a value under a mask, unless the mask is zero.
    ///
    /// # Errors
    /// When the value or mask does not fit, or the value has bits outside of it.
    pub fn ternary<T: Bits>(
        &mut self,
        id: u32,
        field: &'static str,
        width: u32,
        ternary: &Ternary<T>,
    ) -> Result<(), Error> {
        let value = encode(self.of, field, width, &ternary.value)?;
        let mask = encode(self.of, field, width, &ternary.mask)?;
        if !bytes::is_masked(&value, &mask) {
            return Err(self.field_error(field, "the value has ones outside of the mask"));
        }
        if bytes::bit_len(&mask) > 0 {
            self.push(id, Match::Ternary(field_match::Ternary { value, mask }));
        }
        Ok(())
    }

    /// Adds a range, unless it is absent or has all values.
    ///
    /// # Errors
    /// When an end does not fit, or the range is empty.
    pub fn range<T: Bits>(
        &mut self,
        id: u32,
        field: &'static str,
        width: u32,
        range: &Option<Range<T>>,
    ) -> Result<(), Error> {
        let Some(range) = range else { return Ok(()) };
        let low = encode(self.of, field, width, &range.low)?;
        let high = encode(self.of, field, width, &range.high)?;
        if bytes::compare(&low, &high).is_gt() {
            return Err(self.field_error(field, "the range is empty"));
        }
        if bytes::bit_len(&low) > 0 || high != bytes::all_ones(width) {
            self.push(id, Match::Range(field_match::Range { low, high }));
        }
        Ok(())
    }

    /// Adds a value, if there is one.
    ///
    /// # Errors
    /// When the value does not fit.
    pub fn optional<T: Bits>(
        &mut self,
        id: u32,
        field: &'static str,
        width: u32,
        value: &Option<T>,
    ) -> Result<(), Error> {
        let Some(value) = value else { return Ok(()) };
        let value = encode(self.of, field, width, value)?;
        self.push(id, Match::Optional(field_match::Optional { value }));
        Ok(())
    }

    /// Sets the priority.
    ///
    /// # Errors
    /// When it is not above 0.
    pub fn priority(&mut self, priority: i32) -> Result<(), Error> {
        if priority <= 0 {
            return Err(self.field_error("priority", "it must be above 0; the larger wins"));
        }
        self.priority = priority;
        Ok(())
    }
}

/// Reads the fields of a key.
#[derive(Debug)]
pub struct MatchReader<'e> {
    of: &'static str,
    entry: &'e TableEntry,
}

impl<'e> MatchReader<'e> {
    pub(super) fn new(of: &'static str, entry: &'e TableEntry) -> Self {
        MatchReader { of, entry }
    }

    fn find(&self, id: u32) -> Option<&'e Match> {
        let field = self.entry.r#match.iter().find(|m| m.field_id == id);
        field.and_then(|field| field.field_match_type.as_ref())
    }

    fn value<T: Bits>(&self, field: &'static str, width: u32, value: &[u8]) -> Result<T, Error> {
        decode_bytes(self.of, field, width, value).map(T::from_bytes)
    }

    fn other_kind<T>(&self, field: &'static str) -> Result<T, Error> {
        Err(Error::Field {
            of: self.of,
            field,
            what: "it is missing or matches in another way",
        })
    }

    /// Refuses fields that the table does not have.
    ///
    /// # Errors
    /// When there is one.
    pub fn only(&self, ids: &[u32]) -> Result<(), Error> {
        let mut fields = self.entry.r#match.iter();
        match fields.find(|field| !ids.contains(&field.field_id)) {
            Some(_) => Err(Error::Message {
                of: self.of,
                what: "the entry has a field that the table does not have",
            }),
            None => Ok(()),
        }
    }

    /// A field that matches exactly.
    ///
    /// # Errors
    /// When it is missing, of another kind or too wide; so for the others,
    /// which may be missing.
    pub fn exact<T: Bits>(&self, id: u32, field: &'static str, width: u32) -> Result<T, Error> {
        match self.find(id) {
            Some(Match::Exact(exact)) => self.value(field, width, &exact.value),
            _ => self.other_kind(field),
        }
    }

    /// A prefix; the empty one if the field is missing.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn lpm<T: Bits>(&self, id: u32, field: &'static str, width: u32) -> Result<Lpm<T>, Error> {
        match self.find(id) {
            Some(Match::Lpm(lpm)) => Ok(Lpm {
                value: self.value(field, width, &lpm.value)?,
                prefix_len: u32::try_from(lpm.prefix_len).or_else(|_| self.other_kind(field))?,
            }),
            None => Ok(Lpm {
                value: T::from_bytes(&[0]),
                prefix_len: 0,
            }),
            _ => self.other_kind(field),
        }
    }

    /// A value under a mask; the zero mask if the field is missing.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn ternary<T: Bits>(
        &self,
        id: u32,
        field: &'static str,
        width: u32,
    ) -> Result<Ternary<T>, Error> {
        match self.find(id) {
            Some(Match::Ternary(ternary)) => Ok(Ternary {
                value: self.value(field, width, &ternary.value)?,
                mask: self.value(field, width, &ternary.mask)?,
            }),
            None => Ok(Ternary {
                value: T::from_bytes(&[0]),
                mask: T::from_bytes(&[0]),
            }),
            _ => self.other_kind(field),
        }
    }

    /// A range; none if the field is missing.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn range<T: Bits>(
        &self,
        id: u32,
        field: &'static str,
        width: u32,
    ) -> Result<Option<Range<T>>, Error> {
        match self.find(id) {
            Some(Match::Range(range)) => Ok(Some(Range {
                low: self.value(field, width, &range.low)?,
                high: self.value(field, width, &range.high)?,
            })),
            None => Ok(None),
            _ => self.other_kind(field),
        }
    }

    /// A value; none if the field is missing.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn optional<T: Bits>(
        &self,
        id: u32,
        field: &'static str,
        width: u32,
    ) -> Result<Option<T>, Error> {
        match self.find(id) {
            Some(Match::Optional(optional)) => self.value(field, width, &optional.value).map(Some),
            None => Ok(None),
            _ => self.other_kind(field),
        }
    }

    /// The priority.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.entry.priority
    }
}

/// Collects the arguments of an action, or the fields of a controller header.
#[derive(Debug)]
pub struct ArgumentWriter {
    of: &'static str,
    arguments: Vec<(u32, Vec<u8>)>,
}

impl ArgumentWriter {
    /// For the action or header of this name.
    #[must_use]
    pub fn new(of: &'static str) -> Self {
        ArgumentWriter {
            of,
            arguments: Vec::new(),
        }
    }

    /// Adds an argument.
    ///
    /// # Errors
    /// When the value does not fit.
    pub fn put<T: Bits>(
        &mut self,
        id: u32,
        name: &'static str,
        width: u32,
        value: &T,
    ) -> Result<(), Error> {
        let value = encode(self.of, name, width, value)?;
        self.arguments.push((id, value));
        Ok(())
    }

    /// The action.
    #[must_use]
    pub fn into_action(self, action_id: u32) -> Action {
        let arguments = self.arguments.into_iter();
        Action {
            action_id,
            params: arguments
                .map(|(param_id, value)| action::Param { param_id, value })
                .collect(),
        }
    }

    /// The action as a table's.
    #[must_use]
    pub fn into_table_action(self, action_id: u32) -> TableAction {
        TableAction {
            r#type: Some(table_action::Type::Action(self.into_action(action_id))),
        }
    }

    /// The header.
    #[must_use]
    pub fn into_metadata(self) -> Vec<PacketMetadata> {
        let arguments = self.arguments.into_iter();
        arguments
            .map(|(metadata_id, value)| PacketMetadata { metadata_id, value })
            .collect()
    }
}

/// Reads the arguments of an action, or the fields of a controller header.
#[derive(Debug)]
pub struct ArgumentReader<'m> {
    of: &'static str,
    arguments: Vec<(u32, &'m [u8])>,
}

impl<'m> ArgumentReader<'m> {
    /// Of an action with so many parameters.
    ///
    /// # Errors
    /// When it has another number of arguments.
    pub fn of_action(of: &'static str, action: &'m Action, expected: usize) -> Result<Self, Error> {
        let params = action.params.iter();
        let arguments = params.map(|p| (p.param_id, p.value.as_slice())).collect();
        ArgumentReader { of, arguments }.counted(expected)
    }

    /// Of a header with so many fields.
    ///
    /// # Errors
    /// When it has another number of fields.
    pub fn of_header(
        of: &'static str,
        metadata: &'m [PacketMetadata],
        expected: usize,
    ) -> Result<Self, Error> {
        let metadata = metadata.iter();
        let arguments = metadata
            .map(|m| (m.metadata_id, m.value.as_slice()))
            .collect();
        ArgumentReader { of, arguments }.counted(expected)
    }

    fn counted(self, expected: usize) -> Result<Self, Error> {
        let of = self.of;
        match self.arguments.len() == expected {
            true => Ok(self),
            false => Err(Error::Message {
                of,
                what: "it has more or fewer values than the program says",
            }),
        }
    }

    /// An argument.
    ///
    /// # Errors
    /// When it is missing or does not fit.
    pub fn get<T: Bits>(&self, id: u32, name: &'static str, width: u32) -> Result<T, Error> {
        let of = self.of;
        match self.arguments.iter().find(|(given, _)| *given == id) {
            Some((_, value)) => decode_bytes(of, name, width, value).map(T::from_bytes),
            None => Err(Error::Field {
                of,
                field: name,
                what: "it is missing",
            }),
        }
    }
}
