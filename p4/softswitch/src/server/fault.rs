//! Errors of the service: a canonical code and a reason, and how a batch of them becomes one
//! gRPC status (P4Runtime, "Error Reporting Messages").

use p4runtime::rpc::{self, Code};
use p4runtime::v1;
use prost::Message as _;

use crate::control::{ControlError, ErrorKind};

/// Why a request, an update or a stream is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The canonical code of the specification's rule.
    pub code: Code,
    /// What was wrong, for the client's developer.
    pub message: String,
}

impl Fault {
    /// A fault with this code.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Fault {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Fault::new(Code::InvalidArgument, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Fault::new(Code::NotFound, message)
    }

    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Fault::new(Code::PermissionDenied, message)
    }

    pub(crate) fn out_of_range(message: impl Into<String>) -> Self {
        Fault::new(Code::OutOfRange, message)
    }

    pub(crate) fn unimplemented(message: impl Into<String>) -> Self {
        Fault::new(Code::Unimplemented, message)
    }

    /// As the status of a whole RPC.
    pub(crate) fn into_status(self) -> tonic::Status {
        tonic::Status::new(tonic::Code::from(self.code as i32), self.message)
    }
}

impl From<ControlError> for Fault {
    fn from(error: ControlError) -> Self {
        let code = match error {
            ControlError::TooWide { .. } => Code::OutOfRange,
            ControlError::UnknownId { .. } => Code::NotFound,
            _ => match error.kind() {
                ErrorKind::InvalidArgument => Code::InvalidArgument,
                ErrorKind::NotFound => Code::NotFound,
                ErrorKind::AlreadyExists => Code::AlreadyExists,
                ErrorKind::ResourceExhausted => Code::ResourceExhausted,
                ErrorKind::FailedPrecondition => Code::FailedPrecondition,
                ErrorKind::PermissionDenied => Code::PermissionDenied,
                ErrorKind::OutOfRange => Code::OutOfRange,
            },
        };
        Fault::new(code, error.to_string())
    }
}

/// Where the numeric codes in `p4.v1.Error` come from; there are none of our own yet.
pub(super) const SPACE: &str = "meridian-v1model";
const ERROR_TYPE_URL: &str = "type.googleapis.com/p4.v1.Error";

/// Bytes of messages in a batch's details, beyond which updates get their code only: the details
/// travel in a header, of which many clients take no more than 8 KiB.
const WORDS: usize = 2048;

/// The status of a batch with at least one failure: UNKNOWN, with one `p4.v1.Error` per element,
/// in order.
pub(crate) fn batch_status(what: &str, results: &[Result<(), Fault>]) -> tonic::Status {
    let failed = results.iter().filter(|r| r.is_err()).count();
    let message = match results
        .iter()
        .enumerate()
        .find_map(|(i, r)| r.as_ref().err().map(|e| (i, e)))
    {
        Some((index, fault)) => {
            format!(
                "{failed} of {} {what} failed; first, number {index}: {fault}",
                results.len()
            )
        }
        None => String::new(),
    };
    let mut room = WORDS;
    let details = results.iter().map(|result| {
        let error = match result {
            Ok(()) => v1::Error::default(),
            Err(fault) => {
                let needs = fault.message.len() + SPACE.len();
                let tell = needs <= room;
                room = room.saturating_sub(needs);
                v1::Error {
                    canonical_code: fault.code as i32,
                    message: if tell {
                        fault.message.clone()
                    } else {
                        String::new()
                    },
                    space: if tell {
                        SPACE.to_owned()
                    } else {
                        String::new()
                    },
                    ..v1::Error::default()
                }
            }
        };
        prost_types::Any {
            type_url: ERROR_TYPE_URL.to_owned(),
            value: error.encode_to_vec(),
        }
    });
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details: details.collect(),
    };
    tonic::Status::with_details(tonic::Code::Unknown, message, status.encode_to_vec().into())
}
