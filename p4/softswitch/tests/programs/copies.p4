// A packet says in its first byte what is to become of it: each way through
// the switch that is not plain forwarding.
//
// Compiled with: p4c-bm2-ss --std p4-16 -o copies.json copies.p4
#include <core.p4>
#include <v1model.p4>

header wish_t {
    bit<8> kind;
    bit<8> rounds;
    bit<16> data;
}

header tag_t {
    bit<32> value;
}

struct headers_t {
    wish_t wish;
    tag_t tag;
}

struct metadata_t {
    @field_list(1)
    bit<16> kept;
    bit<2> colour;
}

struct message_t {
    bit<16> data;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.wish);
        transition accept;
    }
}

control Check(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(16, MeterType.bytes) rate;
    register<bit<48>>(16) last;

    apply {
        std.egress_spec = 1;
        meta.kept = hdr.wish.data + (bit<16>)hdr.wish.rounds;
        if (hdr.wish.kind == 2) {
            std.mcast_grp = 1;
        } else if (hdr.wish.kind == 3) {
            clone_preserving_field_list(CloneType.I2E, 1, 1);
        } else if (hdr.wish.kind == 6) {
            if (std.instance_type == 0) {
                resubmit_preserving_field_list(1);
            }
        } else if (hdr.wish.kind == 7) {
            rate.execute_meter((bit<32>)hdr.wish.data & 15, meta.colour);
            last.write((bit<32>)hdr.wish.data & 15, std.ingress_global_timestamp);
        } else if (hdr.wish.kind == 8) {
            digest<message_t>(1, { hdr.wish.data });
        } else if (hdr.wish.kind == 9) {
            truncate(8);
        } else if (hdr.wish.kind == 10) {
            hdr.tag.setValid();
            hdr.tag.value = 0x01020304;
        }
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.wish.kind == 4 && std.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, 1, 1);
        }
        if (hdr.wish.kind == 5 && hdr.wish.rounds < 3) {
            hdr.wish.rounds = hdr.wish.rounds + 1;
            recirculate_preserving_field_list(1);
        }
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.tag);
        packet.emit(hdr.wish);
    }
}

V1Switch(Parse(), Check(), In(), Out(), Update(), Deparse()) main;
