//! Dense identifiers of what a program declares, and the port number type.

/// A switch port. v1model ports are `bit<9>`: 0 to 511.
pub type Port = u16;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The identifier as an index into the program's list of its kind.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A table: index into [`crate::Program::tables`].
    TableId
);
id!(
    /// An action: index into [`crate::Program::actions`].
    ActionId
);
id!(
    /// An action profile or selector: index into [`crate::Program::profiles`].
    ProfileId
);
id!(
    /// A counter array, direct or indirect: index into [`crate::Program::counters`].
    CounterId
);
id!(
    /// A meter array, direct or indirect: index into [`crate::Program::meters`].
    MeterId
);
id!(
    /// A register array: index into [`crate::Program::registers`].
    RegisterId
);
id!(
    /// A parser value set: index into [`crate::Program::value_sets`].
    ValueSetId
);
id!(
    /// A digest: index into [`crate::Program::digests`].
    DigestId
);
