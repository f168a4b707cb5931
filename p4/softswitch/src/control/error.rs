//! Why the switch refuses a control operation.

/// The canonical class of a [`ControlError`], named as in `google.rpc.Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request makes no sense for this program.
    InvalidArgument,
    /// The thing is not there.
    NotFound,
    /// The thing is there already.
    AlreadyExists,
    /// No room is left.
    ResourceExhausted,
    /// Something else still needs it, or is needed first.
    FailedPrecondition,
    /// The program forbids it.
    PermissionDenied,
    /// An index is beyond the array.
    OutOfRange,
}

/// Why the switch refuses a control operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No program is installed.
    #[error("no program is installed on the switch; install one first")]
    NoProgram,
    /// An identifier the program does not have.
    #[error("the program has no {kind} number {id}")]
    UnknownId {
        /// "table", "counter"...
        kind: &'static str,
        /// What was asked for.
        id: u32,
    },
    /// Wrong number of key fields.
    #[error("table {table} has {expected} key fields, the entry gives {got}")]
    KeyLength {
        /// Table name.
        table: String,
        /// Fields of the table.
        expected: usize,
        /// Fields given.
        got: usize,
    },
    /// A field matched in a way its kind does not allow.
    #[error("{table}: key field {field} is matched as {expected}, not as {got}")]
    KeyKind {
        /// Table name.
        table: String,
        /// Field name.
        field: String,
        /// The table's kind.
        expected: &'static str,
        /// The kind given.
        got: &'static str,
    },
    /// A value has more bits than its field.
    #[error("{what}: {value} does not fit {width} bits")]
    TooWide {
        /// Table and field, or action and parameter.
        what: String,
        /// The value.
        value: String,
        /// Bits there are.
        width: u32,
    },
    /// A key field is malformed: bits outside its mask or prefix, low > high...
    #[error("{table}: key field {field}: {why}")]
    BadKey {
        /// Table name.
        table: String,
        /// Field name.
        field: String,
        /// What is wrong.
        why: String,
    },
    /// Priority missing or not wanted.
    #[error("{table}: {why}")]
    BadPriority {
        /// Table name.
        table: String,
        /// What is wrong.
        why: &'static str,
    },
    /// An action the table does not have.
    #[error("{owner} does not have action {action}; it has {known}")]
    ActionNotAllowed {
        /// Table or profile name.
        owner: String,
        /// The action given.
        action: String,
        /// The actions there are.
        known: String,
    },
    /// Wrong number of arguments.
    #[error("action {action} takes {expected} arguments, {got} were given")]
    ParamCount {
        /// Action name.
        action: String,
        /// Parameters of the action.
        expected: usize,
        /// Arguments given.
        got: usize,
    },
    /// A call where a member or group is wanted, or the other way round.
    #[error("{table}: {why}")]
    ActionKind {
        /// Table name.
        table: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Another malformed request.
    #[error("{0}")]
    Invalid(String),
    /// The entry, member, group, session... is not there.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The entry, member, group, session... is there already.
    #[error("{0} exists already")]
    Exists(String),
    /// A table, profile or group is full.
    #[error("{what} is full ({size})")]
    Full {
        /// What has no room.
        what: String,
        /// Its size.
        size: usize,
    },
    /// Still referred to.
    #[error("{what} is still in use by {user}")]
    InUse {
        /// What was to go.
        what: String,
        /// Who refers to it.
        user: String,
    },
    /// Const entries or const default action.
    #[error("{0}")]
    Const(String),
    /// Beyond an array's end.
    #[error("{what} has {size} cells, there is none with index {index}")]
    Index {
        /// The array.
        what: String,
        /// Its size.
        size: usize,
        /// What was asked for.
        index: u64,
    },
}

impl ControlError {
    /// The canonical class, for status codes.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoProgram | Self::InUse { .. } => ErrorKind::FailedPrecondition,
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Exists(_) => ErrorKind::AlreadyExists,
            Self::Full { .. } => ErrorKind::ResourceExhausted,
            Self::Const(_) => ErrorKind::PermissionDenied,
            Self::Index { .. } => ErrorKind::OutOfRange,
            _ => ErrorKind::InvalidArgument,
        }
    }
}
