//! What became of each update of a batch, as it travels in a gRPC status
//! (specification section 12.3, "Error Reporting").
//!
//! When updates of a batch fail, the status has the code `UNKNOWN` and its
//! binary details hold a `google.rpc.Status` with one `p4.v1.Error` per update,
//! in the order of the batch. Any other code speaks of the whole call.

use prost::Message as _;
use prost_types::Any;
use tonic::Status;
use tonic::codegen::Bytes;

use crate::rpc::{self, Code};
use crate::v1;

/// The type of the details.
const ERROR_URL: &str = "type.googleapis.com/p4.v1.Error";

/// Why one update failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}: {message}{}", code.as_str_name(), target_text(space, *target_code))]
pub struct UpdateError {
    /// The canonical code.
    pub code: Code,
    /// For people.
    pub message: String,
    /// Whose `target_code` it is; empty when there is none.
    pub space: String,
    /// The target's own code.
    pub target_code: i32,
    /// Whatever else the target says.
    pub details: Option<Any>,
}

fn target_text(space: &str, code: i32) -> String {
    match (space, code) {
        ("", 0) => String::new(),
        ("", code) => format!(" (target code {code})"),
        (space, code) => format!(" ({space} code {code})"),
    }
}

impl UpdateError {
    /// An error without a code of the target's own.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        UpdateError {
            code,
            message: message.into(),
            space: String::new(),
            target_code: 0,
            details: None,
        }
    }
}

impl From<v1::Error> for UpdateError {
    fn from(error: v1::Error) -> Self {
        UpdateError {
            code: Code::try_from(error.canonical_code).unwrap_or(Code::Unknown),
            message: error.message,
            space: error.space,
            target_code: error.code,
            details: error.details,
        }
    }
}

impl From<UpdateError> for v1::Error {
    fn from(error: UpdateError) -> Self {
        v1::Error {
            canonical_code: error.code as i32,
            message: error.message,
            space: error.space,
            code: error.target_code,
            details: error.details,
        }
    }
}

impl From<crate::entry::Error> for UpdateError {
    fn from(error: crate::entry::Error) -> Self {
        UpdateError::new(error.code(), error.to_string())
    }
}

impl From<crate::entry::Error> for Status {
    fn from(error: crate::entry::Error) -> Self {
        Status::new((error.code() as i32).into(), error.to_string())
    }
}

/// The outcome of each of `updates` updates, if the status tells them; `None`
/// when it speaks of the call as a whole, or does not have one detail for each.
#[must_use]
pub fn outcomes(status: &Status, updates: usize) -> Option<Vec<Result<(), UpdateError>>> {
    if status.code() != tonic::Code::Unknown || status.details().is_empty() {
        return None;
    }
    let details = rpc::Status::decode(status.details()).ok()?.details;
    if details.len() != updates {
        return None;
    }
    details
        .into_iter()
        .map(|detail| {
            if detail.type_url != ERROR_URL {
                return None;
            }
            let error = v1::Error::decode(detail.value.as_slice()).ok()?;
            Some(match error.canonical_code {
                0 => Ok(()),
                _ => Err(error.into()),
            })
        })
        .collect()
}

/// Bytes of details up to which every failed update keeps its message. Details travel in a header,
/// base64-encoded, and clients on grpc-core refuse headers of more than 8 to 16 KiB by default.
const DETAILS_BUDGET: usize = 5 << 10;
/// Failed updates that keep their message beyond that; the others keep their codes.
const FULL_MESSAGES: usize = 8;

/// What a server returns for a batch: the response if every update succeeded,
/// else the status that tells the outcomes.
///
/// # Errors
/// When an outcome is an error.
pub fn write_result(outcomes: Vec<Result<(), UpdateError>>) -> Result<v1::WriteResponse, Status> {
    let total = outcomes.len();
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    if failed == 0 {
        return Ok(v1::WriteResponse {});
    }
    let message = format!("{failed} of {total} updates failed");
    let mut errors: Vec<v1::Error> = outcomes
        .into_iter()
        .map(|outcome| outcome.err().map_or(v1::Error::default(), v1::Error::from))
        .collect();
    let text: usize = errors.iter().map(|error| error.message.len()).sum();
    if text + total * ERROR_URL.len() > DETAILS_BUDGET {
        for error in errors
            .iter_mut()
            .filter(|e| e.canonical_code != 0)
            .skip(FULL_MESSAGES)
        {
            *error = v1::Error {
                canonical_code: error.canonical_code,
                ..v1::Error::default()
            };
        }
    }
    let details = errors.into_iter().map(|error| Any {
        type_url: ERROR_URL.to_owned(),
        value: error.encode_to_vec(),
    });
    let status = rpc::Status {
        code: Code::Unknown as i32,
        message: message.clone(),
        details: details.collect(),
    };
    let details = Bytes::from(status.encode_to_vec());
    Err(Status::with_details(tonic::Code::Unknown, message, details))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn failure() -> UpdateError {
        UpdateError {
            space: "meridian".to_owned(),
            target_code: 7,
            ..UpdateError::new(Code::ResourceExhausted, "the table is full")
        }
    }

    #[test]
    fn a_large_batch_keeps_all_codes_and_fits_a_header() {
        let sent: Vec<_> = (0..120).map(|_| Err(failure())).collect();
        let status = write_result(sent).unwrap_err();
        assert!(
            status.details().len() * 4 / 3 < 8 << 10,
            "{}",
            status.details().len()
        );
        let got = outcomes(&status, 120).unwrap();
        assert!(
            got.iter()
                .all(|o| o.as_ref().is_err_and(|e| e.code == Code::ResourceExhausted))
        );
        assert!(
            got[0]
                .as_ref()
                .is_err_and(|e| e.message == "the table is full")
        );
    }

    #[test]
    fn outcomes_survive_the_wire() {
        let sent = vec![Ok(()), Err(failure()), Ok(())];
        let status = write_result(sent.clone()).unwrap_err();
        assert_eq!(status.message(), "1 of 3 updates failed");
        let status = Status::from_header_map(&status.into_http::<()>().headers().clone()).unwrap();
        assert_eq!(outcomes(&status, 3), Some(sent));
        assert_eq!(outcomes(&status, 2), None, "the count must be right");
    }

    #[test]
    fn success_and_other_codes_have_no_details() {
        assert!(write_result(vec![Ok(()); 3]).is_ok());
        assert_eq!(outcomes(&Status::permission_denied("not primary"), 1), None);
        assert_eq!(outcomes(&Status::unknown("no details"), 1), None);
        let nonsense = Status::with_details(tonic::Code::Unknown, "", Bytes::from_static(&[0xff]));
        assert_eq!(outcomes(&nonsense, 1), None);
    }

    #[test]
    fn text_names_code_and_target() {
        assert_eq!(
            failure().to_string(),
            "RESOURCE_EXHAUSTED: the table is full (meridian code 7)"
        );
    }
}
