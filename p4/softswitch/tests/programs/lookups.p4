// One lookup a packet, in the table that it names.
//
// Compiled with: p4c-bm2-ss --std p4-16 -o lookups.json lookups.p4
#include <core.p4>
#include <v1model.p4>

header query_t {
    bit<8> kind;
    bit<16> vrf;
    bit<16> port;
    bit<48> mac;
    bit<32> v4;
    bit<128> v6;
}

struct headers_t {
    query_t query;
}

struct metadata_t { }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.query);
        transition accept;
    }
}

control Check(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action send(bit<9> port) { std.egress_spec = port; }

    table exact_mac {
        key = { hdr.query.mac: exact; }
        actions = { send; NoAction; }
        size = 1048576;
    }
    table prefix_v4 {
        key = { hdr.query.v4: lpm; }
        actions = { send; NoAction; }
        size = 1048576;
    }
    table prefix_v6 {
        key = { hdr.query.vrf: exact; hdr.query.v6: lpm; }
        actions = { send; NoAction; }
        size = 1048576;
    }
    table masks {
        key = { hdr.query.v4: ternary; hdr.query.mac: ternary; hdr.query.port: ternary; }
        actions = { send; NoAction; }
        size = 16384;
    }
    table ranges {
        key = { hdr.query.port: range; hdr.query.v4: optional; }
        actions = { send; NoAction; }
        size = 16384;
    }

    apply {
        if (hdr.query.kind == 0) {
            exact_mac.apply();
        } else if (hdr.query.kind == 1) {
            prefix_v4.apply();
        } else if (hdr.query.kind == 2) {
            prefix_v6.apply();
        } else if (hdr.query.kind == 3) {
            masks.apply();
        } else {
            ranges.apply();
        }
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.query);
    }
}

V1Switch(Parse(), Check(), In(), Out(), Update(), Deparse()) main;
