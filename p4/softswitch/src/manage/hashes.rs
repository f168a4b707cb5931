//! Hashes with parameters, between the service's messages and the switch.

use p4runtime::switch::v1::{self, SetHashRequest};
use tonic::{Code, Status};

use crate::control::{ControlError, CrcParameters, CustomHash, ErrorKind};
use crate::switch::Switch;

fn status(error: ControlError) -> Status {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::FailedPrecondition => Code::FailedPrecondition,
        _ => Code::InvalidArgument,
    };
    Status::new(code, error.to_string())
}

fn message(hash: CustomHash) -> v1::Hash {
    v1::Hash {
        name: hash.name,
        bits: hash.bits,
        source: hash.source,
        crc: Some(v1::Crc {
            polynomial: hash.parameters.polynomial,
            init: hash.parameters.init,
            xor_out: hash.parameters.xor_out,
            reflect_in: hash.parameters.reflect_in,
            reflect_out: hash.parameters.reflect_out,
        }),
    }
}

fn parameters(crc: v1::Crc) -> CrcParameters {
    CrcParameters {
        polynomial: crc.polynomial,
        init: crc.init,
        xor_out: crc.xor_out,
        reflect_in: crc.reflect_in,
        reflect_out: crc.reflect_out,
    }
}

pub(super) fn list(switch: &Switch) -> Result<Vec<v1::Hash>, Status> {
    let hashes = switch.custom_hashes().map_err(status)?;
    Ok(hashes.into_iter().map(message).collect())
}

pub(super) fn set(switch: &mut Switch, request: SetHashRequest) -> Result<v1::Hash, Status> {
    let hashes = switch.custom_hashes().map_err(status)?;
    let name = match (request.name, &hashes[..]) {
        (Some(name), _) => name,
        (None, [only]) => only.name.clone(),
        (None, several) if several.len() > 1 => {
            let names = several.iter().map(|h| h.name.as_str());
            return Err(Status::invalid_argument(format!(
                "name which hash is meant: the program has {}",
                names.collect::<Vec<_>>().join(", ")
            )));
        }
        (None, _) => String::new(),
    };
    let bits = hashes
        .iter()
        .find(|h| h.name == name)
        .map_or(32, |h| h.bits);
    let wanted = match request.crc {
        Some(crc) => parameters(crc),
        None => CrcParameters::standard(bits),
    };
    switch.set_custom_hash(&name, wanted).map_err(status)?;
    let mut now = switch.custom_hashes().map_err(status)?.into_iter();
    now.find(|h| h.name == name)
        .map(message)
        .ok_or_else(|| Status::internal("the hash is gone"))
}
