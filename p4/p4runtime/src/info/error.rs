//! What can be wrong with a P4Info, or with a question to it.

use super::{Kind, Selector};
use crate::rpc::Code;

/// What can be wrong with a P4Info, or with a question to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a P4Info.
    #[error("the P4Info text cannot be read: {0}")]
    Text(#[from] crate::text::Error),
    /// An object has no id, or no name.
    #[error("{kind} number {place} (from 0) has no id or no name; its preamble needs both")]
    Nameless {
        /// What it is.
        kind: Kind,
        /// Which of its kind, from 0.
        place: usize,
    },
    /// Two objects of one kind share an id.
    #[error("{kind} `{name}` has id {id} (0x{id:08x}), which another {kind} has too")]
    DoubleId {
        /// What they are.
        kind: Kind,
        /// The shared id.
        id: u32,
        /// The name of one of them.
        name: String,
    },
    /// Two objects of one kind share a name or alias.
    #[error("two objects of kind {kind} are called `{name}`")]
    DoubleName {
        /// What they are.
        kind: Kind,
        /// The shared name.
        name: String,
    },
    /// An id leads nowhere.
    #[error("`{from}` refers to {kind} {id} (0x{id:08x}), which is not in the P4Info")]
    Dangling {
        /// The object that refers.
        from: String,
        /// What it refers to.
        kind: Kind,
        /// The id that leads nowhere.
        id: u32,
    },
    /// A match field lacks its id or its kind of match, or has a negative width.
    #[error(
        "match field `{field}` of `{within}` lacks an id or a match type, or has a negative width"
    )]
    BadField {
        /// The table.
        within: String,
        /// The field.
        field: String,
    },
    /// A kind of match that P4Runtime does not define.
    #[error(
        "match field `{field}` matches by `{kind}`; known are exact, lpm, ternary, range and optional"
    )]
    UnsupportedMatch {
        /// The field.
        field: String,
        /// The kind of match as P4Info names it.
        kind: String,
    },
    /// A name or an id that is not there.
    #[error("{}", unknown_text(.what, .wanted, .within.as_deref(), .near.as_deref(), .valid))]
    Unknown {
        /// What was looked for, such as `table`.
        what: String,
        /// The name or id asked for.
        wanted: String,
        /// Where it was looked for, if not in the whole program.
        within: Option<String>,
        /// The name that was probably meant.
        near: Option<String>,
        /// The names there are.
        valid: Vec<String>,
    },
}

impl Error {
    /// The canonical code that a server answers with: an entity that names what
    /// the program does not have is malformed (specification section 12.1).
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Error::UnsupportedMatch { .. } => Code::Unimplemented,
            _ => Code::InvalidArgument,
        }
    }

    pub(crate) fn unknown(
        what: impl Into<String>,
        wanted: Selector<'_>,
        within: Option<&str>,
        valid: Vec<&str>,
    ) -> Self {
        let near = match wanted {
            Selector::Id(_) => None,
            Selector::Name(name) => nearest(name, &valid).map(str::to_owned),
        };
        Error::Unknown {
            what: what.into(),
            wanted: wanted.to_string(),
            within: within.map(str::to_owned),
            near,
            valid: valid.into_iter().map(str::to_owned).collect(),
        }
    }
}

fn unknown_text(
    what: &str,
    wanted: &str,
    within: Option<&str>,
    near: Option<&str>,
    valid: &[String],
) -> String {
    let mut text = match within {
        Some(within) => format!("`{within}` has no {what} {wanted}"),
        None => format!("the program has no {what} {wanted}"),
    };
    if let Some(near) = near {
        text += &format!("; did you mean `{near}`?");
    }
    text += &match valid {
        [] => "; it has none".to_owned(),
        names => format!("; there are: {}", names.join(", ")),
    };
    text
}

/// The candidate that a typing error turns into `wanted`, if one is near.
fn nearest<'c>(wanted: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1);
    candidates
        .iter()
        .map(|candidate| (distance(&last(wanted), &last(candidate)), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements between two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn nearest_needs_to_be_near() {
        let names = ["route_v4", "route_v6", "nexthop"];
        assert_eq!(nearest("rout_v6", &names), Some("route_v6"));
        assert_eq!(nearest("ingress.next_hop", &names), Some("nexthop"));
        assert_eq!(nearest("acl", &names), None);
    }
}
