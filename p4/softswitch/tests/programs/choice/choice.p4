// A selector's choice, and the colours of meters, written into the packet.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files choice.p4info.txt -o choice.json choice.p4
#include <core.p4>
#include <v1model.p4>

header choice_t {
    bit<8> group;
    bit<32> src;
    bit<32> dst;
    bit<8> protocol;
    bit<16> chosen;
    bit<8> meter;
    bit<2> packets;
    bit<2> bytes;
    bit<2> direct;
    bit<2> pad;
    bit<16> after;
}

struct headers_t {
    choice_t c;
}

struct metadata_t {
    bit<2> direct;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.c);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc16, 64, 16) spread;
    meter(8, MeterType.packets) by_packets;
    meter(8, MeterType.bytes) by_bytes;
    direct_meter<bit<2>>(MeterType.packets) direct;

    action choose(bit<16> value) { hdr.c.chosen = value; }
    action other(bit<16> value) { hdr.c.chosen = value; hdr.c.after = 0xffff; }
    table groups {
        key = {
            hdr.c.group: exact;
            hdr.c.src: selector;
            hdr.c.dst: selector;
            hdr.c.protocol: selector;
        }
        actions = { choose; other; NoAction; }
        implementation = spread;
        size = 16;
    }
    action coloured() { direct.read(meta.direct); }
    table metered {
        key = { hdr.c.meter: exact; }
        actions = { coloured; NoAction; }
        default_action = NoAction();
        meters = direct;
        size = 16;
    }
    apply {
        std.egress_spec = 2;
        switch (groups.apply().action_run) {
            choose: { hdr.c.after = hdr.c.after + 1; }
            other: { hdr.c.after = hdr.c.after + 2; }
            default: { hdr.c.after = 0xdead; }
        }
        if (hdr.c.meter != 0) {
            by_packets.execute_meter((bit<32>)hdr.c.meter, hdr.c.packets);
            by_bytes.execute_meter((bit<32>)hdr.c.meter, hdr.c.bytes);
        }
        metered.apply();
        hdr.c.direct = meta.direct;
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.c); }
}

V1Switch(Parse(), Verify(), In(), Out(), Update(), Deparse()) main;
