//! CRCs by their parameters, for the hash algorithms that leave these to the control plane.

/// The parameters of a CRC, as catalogues of CRCs and bmv2 give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcParameters {
    /// The generator polynomial without its highest term; the lowest term is the lowest bit.
    pub polynomial: u64,
    /// What the register begins with.
    pub init: u64,
    /// What the result is combined with by exclusive or.
    pub xor_out: u64,
    /// Whether each byte goes in with its lowest bit first.
    pub reflect_in: bool,
    /// Whether the register is turned round at the end, before `xor_out`.
    pub reflect_out: bool,
}

impl CrcParameters {
    /// Those that an algorithm of this width has until it is given others: CRC-8/SMBUS,
    /// CRC-16/ARC, CRC-32/ISO-HDLC, and for 64 bits the polynomial of ISO 3309.
    pub fn standard(bits: u32) -> Self {
        let (polynomial, ones, reflected) = match bits {
            8 => (0x07, 0, false),
            16 => (0x8005, 0, true),
            32 => (0x04c1_1db7, 0xffff_ffff, true),
            _ => (0x1b, 0, true),
        };
        CrcParameters {
            polynomial,
            init: ones,
            xor_out: ones,
            reflect_in: reflected,
            reflect_out: reflected,
        }
    }

    /// The field that does not fit a CRC of `bits`, with its value.
    pub(crate) fn misfit(&self, bits: u32) -> Option<(&'static str, u64)> {
        let fields = [
            ("polynomial", self.polynomial),
            ("init", self.init),
            ("xor_out", self.xor_out),
        ];
        let fits = |value: u64| bits >= 64 || value >> bits == 0;
        fields.into_iter().find(|(_, value)| !fits(*value))
    }
}

/// A CRC ready to use.
#[derive(Clone)]
pub(crate) struct Crc {
    bits: u32,
    parameters: CrcParameters,
    /// What a byte that leaves the register does to the rest.
    table: Box<[u64; 256]>,
}

impl Crc {
    /// `bits` is 8 to 64, and the parameters fit it.
    pub(crate) fn new(bits: u32, parameters: CrcParameters) -> Self {
        // The register is kept at the top of the word, so that all widths are alike.
        let polynomial = parameters.polynomial << (64 - bits);
        let mut table = Box::new([0; 256]);
        for (byte, remainder) in (0u64..).zip(table.iter_mut()) {
            *remainder = (0..8).fold(byte << 56, |crc, _| match crc >> 63 {
                1 => crc << 1 ^ polynomial,
                _ => crc << 1,
            });
        }
        Crc {
            bits,
            parameters,
            table,
        }
    }

    pub(crate) fn parameters(&self) -> CrcParameters {
        self.parameters
    }

    pub(crate) fn of(&self, bytes: &[u8]) -> u64 {
        let unused = 64 - self.bits;
        let own = &self.parameters;
        let crc = bytes.iter().fold(own.init << unused, |crc, &byte| {
            let byte = match own.reflect_in {
                true => byte.reverse_bits(),
                false => byte,
            };
            crc << 8 ^ self.table[usize::from((crc >> 56) as u8 ^ byte)]
        });
        let crc = match own.reflect_out {
            true => crc.reverse_bits(),
            false => crc >> unused,
        };
        crc ^ own.xor_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    /// Name, bits, polynomial, init, xor_out, reflect_in and _out, CRC of [`CHECK`]: from the
    /// catalogue of parametrised CRC algorithms.
    type Known = (&'static str, u32, u64, u64, u64, bool, bool, u64);

    const CATALOGUE: &[Known] = &[
        ("CRC-8/SMBUS", 8, 0x07, 0, 0, false, false, 0xf4),
        ("CRC-8/MAXIM-DOW", 8, 0x31, 0, 0, true, true, 0xa1),
        ("CRC-8/ROHC", 8, 0x07, 0xff, 0, true, true, 0xd0),
        ("CRC-16/ARC", 16, 0x8005, 0, 0, true, true, 0xbb3d),
        ("CRC-16/XMODEM", 16, 0x1021, 0, 0, false, false, 0x31c3),
        (
            "CRC-16/IBM-3740",
            16,
            0x1021,
            0xffff,
            0,
            false,
            false,
            0x29b1,
        ),
        (
            "CRC-16/IBM-SDLC",
            16,
            0x1021,
            0xffff,
            0xffff,
            true,
            true,
            0x906e,
        ),
        (
            "CRC-16/GENIBUS",
            16,
            0x1021,
            0xffff,
            0xffff,
            false,
            false,
            0xd64e,
        ),
        ("CRC-16/USB", 16, 0x8005, 0xffff, 0xffff, true, true, 0xb4c8),
        ("CRC-16/DNP", 16, 0x3d65, 0, 0xffff, true, true, 0xea82),
        (
            "CRC-32/ISO-HDLC",
            32,
            0x04c1_1db7,
            0xffff_ffff,
            0xffff_ffff,
            true,
            true,
            0xcbf4_3926,
        ),
        (
            "CRC-32/BZIP2",
            32,
            0x04c1_1db7,
            0xffff_ffff,
            0xffff_ffff,
            false,
            false,
            0xfc89_1918,
        ),
        (
            "CRC-32/ISCSI",
            32,
            0x1edc_6f41,
            0xffff_ffff,
            0xffff_ffff,
            true,
            true,
            0xe306_9283,
        ),
        (
            "CRC-32/MPEG-2",
            32,
            0x04c1_1db7,
            0xffff_ffff,
            0,
            false,
            false,
            0x0376_e6e7,
        ),
        ("CRC-32/XFER", 32, 0xaf, 0, 0, false, false, 0xbd0b_e338),
        (
            "CRC-64/ECMA-182",
            64,
            0x42f0_e1eb_a9ea_3693,
            0,
            0,
            false,
            false,
            0x6c40_df5f_0b49_7347,
        ),
        (
            "CRC-64/GO-ISO",
            64,
            0x1b,
            u64::MAX,
            u64::MAX,
            true,
            true,
            0xb909_56c7_75a4_1001,
        ),
        (
            "CRC-64/XZ",
            64,
            0x42f0_e1eb_a9ea_3693,
            u64::MAX,
            u64::MAX,
            true,
            true,
            0x995d_c9bb_df19_39fa,
        ),
    ];

    #[test]
    fn check_values_of_the_catalogue() {
        for &(name, bits, polynomial, init, xor_out, reflect_in, reflect_out, check) in CATALOGUE {
            let parameters = CrcParameters {
                polynomial,
                init,
                xor_out,
                reflect_in,
                reflect_out,
            };
            assert_eq!(parameters.misfit(bits), None, "{name}");
            assert_eq!(Crc::new(bits, parameters).of(CHECK), check, "{name}");
        }
    }

    #[test]
    fn standard_parameters() {
        for (bits, check) in [(8, 0xf4), (16, 0xbb3d), (32, 0xcbf4_3926)] {
            let crc = Crc::new(bits, CrcParameters::standard(bits));
            assert_eq!(crc.of(CHECK), check);
        }
        let crc = Crc::new(64, CrcParameters::standard(64));
        assert_eq!(crc.of(&[0x80]), 0xd800_0000_0000_0000);
    }

    #[test]
    fn parameters_fit_their_width() {
        let wide = CrcParameters {
            init: 0x1_0000,
            ..CrcParameters::standard(16)
        };
        assert_eq!(wide.misfit(16), Some(("init", 0x1_0000)));
        assert_eq!(wide.misfit(32), None);
    }
}
