// Every match kind: the packet names a table and a key, and comes back with
// the result of the entry that matched, or of the default action.
// Compiled with: p4c-bm2-ss --std p4-16 -o matching.json matching.p4
#include <core.p4>
#include <v1model.p4>

header query_t {
    bit<8>  which;
    bit<8>  flag;
    bit<16> a;
    bit<32> b;
    bit<128> c;
    bit<32> result;
}

struct headers_t { query_t query; }
struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.query);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action answer(bit<32> result) { hdr.query.result = result; }
    action missed() { hdr.query.result = 0xffffffff; }

    table exact_keys {
        key = { hdr.query.a: exact; hdr.query.c: exact; }
        actions = { answer; missed; }
        const default_action = missed();
    }
    table prefix {
        key = { hdr.query.a: exact; hdr.query.b: lpm; }
        actions = { answer; missed; }
        const default_action = missed();
    }
    table wide_prefix {
        key = { hdr.query.c: lpm; }
        actions = { answer; missed; }
        const default_action = missed();
    }
    table ternary_keys {
        key = { hdr.query.a: ternary; hdr.query.b: lpm; hdr.query.c: ternary; }
        actions = { answer; missed; }
        const default_action = missed();
    }
    table ranges {
        key = { hdr.query.a: range; hdr.query.b: range; hdr.query.flag: ternary; }
        actions = { answer; missed; }
        const default_action = missed();
    }
    table optionals {
        key = { hdr.query.a: optional; hdr.query.flag: optional; }
        actions = { answer; missed; }
        const default_action = missed();
    }
    table constants {
        key = { hdr.query.a: ternary; }
        actions = { answer; missed; }
        const default_action = missed();
        const entries = {
            0x1200 &&& 0xff00: answer(1);
            0x1234: answer(2);
            0x0034 &&& 0x00ff: answer(3);
        }
    }

    apply {
        std.egress_spec = 1;
        if (hdr.query.which == 0) { exact_keys.apply(); }
        else if (hdr.query.which == 1) { prefix.apply(); }
        else if (hdr.query.which == 2) { wide_prefix.apply(); }
        else if (hdr.query.which == 3) { ternary_keys.apply(); }
        else if (hdr.query.which == 4) { ranges.apply(); }
        else if (hdr.query.which == 5) { optionals.apply(); }
        else { constants.apply(); }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.query); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
