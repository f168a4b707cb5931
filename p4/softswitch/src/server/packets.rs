//! Packet-in and packet-out: the controller header that the program parses and emits, and the
//! metadata that the controller sees (P4Runtime, "Packet I/O").

use p4runtime::config::v1 as config;
use p4runtime::v1;

use super::domain::{Domain, Translations};
use super::fault::Fault;
use crate::value::Value;

/// A header annotated with `@controller_header`.
#[derive(Debug)]
pub(crate) struct PacketHeader {
    fields: Vec<HeaderField>,
    /// Bytes, the last one padded.
    len: usize,
}

#[derive(Debug)]
struct HeaderField {
    id: u32,
    name: String,
    /// Bits in the header.
    width: u32,
    domain: Domain,
}

impl PacketHeader {
    /// From what P4Info says of it, and the fields' widths in the program.
    pub(crate) fn of(
        header: &str,
        info: &config::ControllerPacketMetadata,
        translations: &Translations<'_>,
        widths: &[u32],
    ) -> Result<Self, Fault> {
        let field = |(m, width): (&config::controller_packet_metadata::Metadata, &u32)| {
            let what = format!("metadata {} of {header}", m.name);
            let type_name = m.type_name.as_ref();
            let domain = Domain::of(&what, m.bitwidth, type_name, translations, *width)?;
            Ok(HeaderField {
                id: m.id,
                name: m.name.clone(),
                width: *width,
                domain,
            })
        };
        let fields = info
            .metadata
            .iter()
            .zip(widths)
            .map(field)
            .collect::<Result<Vec<_>, Fault>>()?;
        let bits: u32 = fields.iter().map(|f| f.width).sum();
        Ok(PacketHeader {
            fields,
            len: bits.div_ceil(8) as usize,
        })
    }

    /// Takes the header off a packet from the CPU port. A packet that is too short for it goes
    /// to the controller whole, without metadata.
    pub(crate) fn decode(&self, packet: &[u8]) -> v1::PacketIn {
        let Some((header, payload)) = packet.split_at_checked(self.len) else {
            return v1::PacketIn {
                payload: packet.to_vec(),
                metadata: Vec::new(),
            };
        };
        let mut at = 0;
        let metadata = self.fields.iter().map(|field| {
            let value = bits(header, at, field.width);
            at += field.width;
            v1::PacketMetadata {
                metadata_id: field.id,
                value: field.domain.encode(&value),
            }
        });
        v1::PacketIn {
            metadata: metadata.collect(),
            payload: payload.to_vec(),
        }
    }

    /// The packet that goes into the CPU port: header, then payload.
    ///
    /// # Errors
    /// `InvalidArgument` unless there is exactly one fitting value per field.
    pub(crate) fn encode(&self, packet: &v1::PacketOut) -> Result<Vec<u8>, Fault> {
        if let Some(extra) = packet
            .metadata
            .iter()
            .find(|m| !self.fields.iter().any(|f| f.id == m.metadata_id))
        {
            return Err(Fault::invalid(format!(
                "packet_out has no metadata with id {}; it has {}",
                extra.metadata_id,
                self.names()
            )));
        }
        let mut bytes = vec![0; self.len];
        let mut at = 0;
        for field in &self.fields {
            let mut given = packet.metadata.iter().filter(|m| m.metadata_id == field.id);
            let what = || format!("packet_out metadata {} (id {})", field.name, field.id);
            let (Some(metadata), None) = (given.next(), given.next()) else {
                return Err(Fault::invalid(format!(
                    "{} must be given exactly once",
                    what()
                )));
            };
            let value = field
                .domain
                .decode(&metadata.value, what)
                .map_err(|fault| Fault::invalid(fault.message))?;
            put_bits(&mut bytes, at, field.width, &value);
            at += field.width;
        }
        bytes.extend_from_slice(&packet.payload);
        Ok(bytes)
    }

    fn names(&self) -> String {
        let names: Vec<_> = self
            .fields
            .iter()
            .map(|f| format!("{} ({})", f.id, f.name))
            .collect();
        names.join(", ")
    }
}

fn bits(bytes: &[u8], at: u32, width: u32) -> Value {
    let mut out = vec![0u8; width.div_ceil(8) as usize];
    let pad = out.len() as u32 * 8 - width;
    for i in 0..width {
        let from = at + i;
        let bit = bytes[(from / 8) as usize] >> (7 - from % 8) & 1;
        let to = pad + i;
        out[(to / 8) as usize] |= bit << (7 - to % 8);
    }
    Value::from_be_bytes(&out)
}

fn put_bits(bytes: &mut [u8], at: u32, width: u32, value: &Value) {
    for i in 0..width {
        let bit = value.limb(((width - 1 - i) / 64) as usize) >> ((width - 1 - i) % 64) & 1;
        let to = at + i;
        bytes[(to / 8) as usize] |= (bit as u8) << (7 - to % 8);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use p4runtime::rpc::Code;
    use proptest::prelude::*;

    use super::*;

    fn header(widths: &[u32]) -> PacketHeader {
        let metadata =
            widths
                .iter()
                .enumerate()
                .map(|(i, w)| config::controller_packet_metadata::Metadata {
                    id: i as u32 + 1,
                    name: format!("f{i}"),
                    bitwidth: *w as i32,
                    ..Default::default()
                });
        let info = config::ControllerPacketMetadata {
            metadata: metadata.collect(),
            ..Default::default()
        };
        let types = config::P4TypeInfo::default();
        let translations = Translations::of(&types, None);
        PacketHeader::of("packet_out", &info, &translations, widths).unwrap()
    }

    fn out(metadata: &[(u32, &[u8])], payload: &[u8]) -> v1::PacketOut {
        let metadata = metadata.iter().map(|(id, value)| v1::PacketMetadata {
            metadata_id: *id,
            value: value.to_vec(),
        });
        v1::PacketOut {
            payload: payload.to_vec(),
            metadata: metadata.collect(),
        }
    }

    #[test]
    fn fields_are_packed_from_the_high_bit() {
        let h = header(&[9, 7]);
        let packet = out(&[(2, &[0x05]), (1, &[0x01, 0xfe])], &[0xaa]);
        let bytes = h.encode(&packet).unwrap();
        assert_eq!(bytes, [0xff, 0x05, 0xaa]);
        let back = h.decode(&bytes);
        assert_eq!(back.payload, [0xaa]);
        assert_eq!(back.metadata[0].value, [0x01, 0xfe]);
        assert_eq!(back.metadata[1].value, [0x05]);
    }

    #[test]
    fn every_field_exactly_once() {
        let h = header(&[9, 7]);
        for metadata in [
            &[(1u32, &[1u8][..])][..],
            &[(1, &[1]), (2, &[1]), (2, &[1])],
            &[(1, &[1]), (2, &[1]), (3, &[1])],
            &[(1, &[0x02, 0x00]), (2, &[1])],
            &[(1, &[]), (2, &[1])],
        ] {
            let fault = h.encode(&out(metadata, &[])).unwrap_err();
            assert_eq!(fault.code, Code::InvalidArgument, "{metadata:?}");
        }
    }

    #[test]
    fn short_packets_go_up_whole() {
        let back = header(&[9, 7]).decode(&[1]);
        assert_eq!(back.payload, [1]);
        assert!(back.metadata.is_empty());
    }

    proptest! {
        #[test]
        fn round_trip(
            fields in proptest::collection::vec((1u32..150, any::<[u8; 19]>()), 1..6),
            payload in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let widths: Vec<u32> = fields.iter().map(|f| f.0).collect();
            let h = header(&widths);
            let metadata: Vec<v1::PacketMetadata> = fields
                .iter()
                .enumerate()
                .map(|(i, (w, b))| v1::PacketMetadata {
                    metadata_id: i as u32 + 1,
                    value: bits(b, 0, *w).to_be_bytes(),
                })
                .collect();
            let packet = v1::PacketOut { payload, metadata };
            let back = h.decode(&h.encode(&packet).unwrap());
            prop_assert_eq!(back.payload, packet.payload);
            prop_assert_eq!(back.metadata, packet.metadata);
        }
    }
}
