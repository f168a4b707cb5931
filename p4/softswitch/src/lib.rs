//! An embedded v1model switch that loads p4c's bmv2 JSON and serves P4Runtime.
