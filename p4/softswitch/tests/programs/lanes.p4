// What several lanes share: registers changed in one action, over several, and wider than a word; counters.
//
// Compiled with: p4c-bm2-ss --std p4-16 -o lanes.json lanes.p4
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct meta_t {
    bit<32> kept;
}

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply {} }

control Enter(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    // Read and written by one action.
    register<bit<32>>(8) total;
    // Read by an action before others, and written by a later one.
    register<bit<32>>(8) spanned;
    // Both halves of its cell are always the same.
    register<bit<128>>(1) halves;
    register<bit<32>>(1) torn;
    counter(8, CounterType.packets_and_bytes) seen;

    apply {
        bit<32> index = (bit<32>)hdr.ethernet.dst[2:0];
        bit<32> value;
        total.read(value, index);
        total.write(index, value + 1);
        spanned.read(meta.kept, index);
        if (hdr.ethernet.type[0:0] == 1) {
            seen.count(index);
        }
        spanned.write(index, meta.kept + 1);
        bit<128> both;
        halves.read(both, 0);
        if (both[127:64] != both[63:0]) {
            torn.write(0, 1);
        }
        halves.write(0, 16w0 ++ hdr.ethernet.src ++ 16w0 ++ hdr.ethernet.src);
        std.egress_spec = 8w0 ++ hdr.ethernet.dst[0:0];
    }
}

control Leave(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<32>>(2) left;

    apply {
        bit<32> value;
        left.read(value, (bit<32>)std.egress_port);
        left.write((bit<32>)std.egress_port, value + 1);
    }
}

control Update(inout headers_t hdr, inout meta_t meta) { apply {} }

control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); }
}

V1Switch(Parse(), Verify(), Enter(), Leave(), Update(), Deparse()) main;
