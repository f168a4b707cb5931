// What a switch does to packets over time: queues, meters, digests, truncation. Packets say what
// they want and leave with what they saw.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files traffic.p4info.txt -o traffic.json traffic.p4
#include <core.p4>
#include <v1model.p4>

header wish_t {
    bit<8> op;          // 1: send a digest, 2: clone
    bit<8> priority;
    bit<16> cut;        // bytes to truncate to; 0: do not
    bit<32> number;
}

header seen_t {
    bit<8> packets;     // colour of the meter of packets
    bit<8> bytes;       // colour of the meter of bytes
    bit<8> direct;      // colour of the entry's own meter
    bit<8> queue;
    bit<32> enq_depth;
    bit<32> deq_depth;
    bit<32> length;
    bit<32> kind;       // instance type
}

struct headers_t {
    wish_t wish;
    seen_t seen;
}

struct learn_t {
    bit<8> priority;
    bit<32> number;
}

struct metadata_t {
    bit<8> packets;
    bit<8> bytes;
    bit<8> direct;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.wish);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(4, MeterType.packets) by_packets;
    meter(4, MeterType.bytes) by_bytes;
    direct_meter<bit<8>>(MeterType.packets) own;

    action metered() { own.read(meta.direct); }
    table classes {
        key = { hdr.wish.op: exact; }
        actions = { metered; NoAction; }
        default_action = NoAction();
        meters = own;
    }
    apply {
        std.egress_spec = 2;
        std.priority = hdr.wish.priority[2:0];
        meta.packets = 9;
        meta.bytes = 9;
        meta.direct = 9;
        by_packets.execute_meter((bit<32>)hdr.wish.op & 3, meta.packets);
        by_bytes.execute_meter((bit<32>)hdr.wish.op & 3, meta.bytes);
        classes.apply();
        if (hdr.wish.op == 1) {
            digest<learn_t>(1, { hdr.wish.priority, hdr.wish.number });
        }
        if (hdr.wish.op == 2) {
            clone(CloneType.I2E, 5);
        }
        if (hdr.wish.cut != 0) {
            truncate((bit<32>)hdr.wish.cut);
        }
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.seen.setValid();
        hdr.seen.packets = meta.packets;
        hdr.seen.bytes = meta.bytes;
        hdr.seen.direct = meta.direct;
        hdr.seen.queue = (bit<8>)std.priority;
        hdr.seen.enq_depth = (bit<32>)std.enq_qdepth;
        hdr.seen.deq_depth = (bit<32>)std.deq_qdepth;
        hdr.seen.length = std.packet_length;
        hdr.seen.kind = std.instance_type;
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.wish);
        packet.emit(hdr.seen);
    }
}

V1Switch(Parse(), Verify(), In(), Out(), Update(), Deparse()) main;
