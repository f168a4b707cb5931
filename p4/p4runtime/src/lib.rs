//! P4Runtime v1.5: messages, byte strings, the P4Info index and a client session.
