//! What the driver and the runner say to each other: one JSON object per line.

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::plan::Plan;

/// A request; the runner answers with the same id.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Request<'a> {
    Exec {
        id: u64,
        host: &'a str,
        command: &'a str,
        timeout_ms: u64,
    },
    Link {
        id: u64,
        link: u32,
        up: bool,
    },
}

/// A line from the runner.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Message {
    Answer(Answer),
    Event(Event),
}

/// The answer to a request.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) id: u64,
    /// Exit code, or minus the signal's number.
    #[serde(default)]
    pub(super) code: i32,
    #[serde(default)]
    pub(super) timed_out: bool,
    #[serde(default)]
    pub(super) out: String,
    #[serde(default)]
    pub(super) err: String,
}

/// Something that happened.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Event {
    Progress(Progress),
    Ready { logs: String },
    Failed(Failure),
    SwitchExited(SwitchExit),
    Stopped,
}

/// How far bring-up is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Progress {
    /// `nodes`, `links`, `addresses` or `switches`.
    pub step: String,
    /// How many of them are done.
    pub done: usize,
    /// Of how many.
    pub total: usize,
}

/// A switch program that ended while its fabric was up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SwitchExit {
    /// The switch.
    pub switch: String,
    /// Exit code, or minus the number of the signal that killed it.
    pub code: i32,
    /// The end of its log.
    pub log: String,
}

/// Why bring-up failed, as the runner says it.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Failure {
    Busy {
        pid: u32,
    },
    Import {
        message: String,
        python: String,
    },
    Setup {
        node: String,
        output: String,
    },
    Switch {
        switch: String,
        program: String,
        code: i32,
        log: String,
    },
    Silent {
        switch: String,
        port: u16,
        log: String,
    },
    Runner {
        message: String,
    },
}

impl Failure {
    pub(super) fn into_error(self, plan: &Plan) -> Error {
        match self {
            Self::Busy { pid } => Error::Busy {
                fabric: plan.fabric.clone(),
                pid,
            },
            Self::Import { message, python } => Error::NoMininet {
                tried: python,
                reason: Some(message),
            },
            Self::Setup { node, output } => Error::Setup { node, output },
            Self::Switch {
                switch,
                program,
                code,
                log,
            } => Error::SwitchFailed {
                switch,
                program,
                code,
                log,
            },
            Self::Silent { switch, port, log } => Error::SwitchSilent { switch, port, log },
            Self::Runner { message } => Error::Runner { message },
        }
    }
}
