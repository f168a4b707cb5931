// Every way that a packet and its copies can take, by a number in the packet.
// Egress reports what it knows of the packet in the packet.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files paths.p4info.txt -o paths.json paths.p4
#include <core.p4>
#include <v1model.p4>

header report_t {
    bit<8> what;
    bit<8> arg;
    bit<16> kept;
    bit<32> instance;
    bit<16> rid;
    bit<32> length;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<8> passes;
}

header extra_t {
    bit<32> value;
}

struct headers_t {
    report_t r;
    extra_t extra;
}

struct metadata_t {
    @field_list(1, 2, 3)
    bit<16> kept;
    @field_list(2, 3)
    bit<8> passes;
    bit<16> lost;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.r);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action forward() { std.egress_spec = (bit<9>)hdr.r.arg; }
    apply {
        meta.passes = meta.passes + 1;
        meta.kept = meta.kept + 0x1001;
        meta.lost = 7;
        if (!hdr.r.isValid()) {
            std.egress_spec = 1;
        } else if (hdr.r.what == 1) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.r.arg, 1);
            std.egress_spec = 1;
        } else if (hdr.r.what == 2) {
            clone(CloneType.I2E, (bit<32>)hdr.r.arg);
            std.egress_spec = 1;
        } else if (hdr.r.what == 3) {
            std.mcast_grp = (bit<16>)hdr.r.arg;
        } else if (hdr.r.what == 4) {
            if (meta.passes < 4) {
                resubmit_preserving_field_list(2);
                hdr.r.arg = 3;
            }
            forward();
        } else if (hdr.r.what == 8) {
            mark_to_drop(std);
        } else if (hdr.r.what == 9) {
            std.mcast_grp = 5;
            mark_to_drop(std);
            forward();
        } else if (hdr.r.what == 10) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.r.arg, 3);
            std.mcast_grp = 5;
        } else if (hdr.r.what == 11) {
            forward();
            exit;
        } else if (hdr.r.what == 12) {
            hdr.extra.setValid();
            hdr.extra.value = 0xabcdef01;
            forward();
        } else if (hdr.r.what == 14) {
            // The clone is the packet as it came, though it is dropped.
            hdr.r.kept = 0xffff;
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.r.arg, 1);
            mark_to_drop(std);
        } else if (hdr.r.what == 15) {
            // The last one counts.
            clone(CloneType.I2E, 8);
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.r.arg, 1);
            std.egress_spec = 1;
        } else if (hdr.r.what == 16) {
            // Resubmission goes before multicast.
            std.mcast_grp = 5;
            if (std.instance_type == 0) {
                resubmit_preserving_field_list(2);
            }
        } else {
            forward();
        }
        if (hdr.r.what == 11) {
            std.egress_spec = 2;
        }
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.r.instance = std.instance_type;
        hdr.r.rid = std.egress_rid;
        hdr.r.length = std.packet_length;
        hdr.r.ingress_port = (bit<16>)std.ingress_port;
        hdr.r.egress_port = (bit<16>)std.egress_port;
        hdr.r.kept = meta.kept ^ meta.lost;
        hdr.r.passes = meta.passes;
        if (hdr.r.what == 5 && std.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, 7, 1);
        } else if (hdr.r.what == 6 && meta.passes < 3) {
            recirculate_preserving_field_list(3);
        } else if (hdr.r.what == 7) {
            truncate(32w20);
        } else if (hdr.r.what == 13 && std.instance_type == 0) {
            clone(CloneType.E2E, 7);
            mark_to_drop(std);
        } else if (hdr.r.what == 17 && std.instance_type == 0) {
            // What comes after the call is in the clone as well.
            clone_preserving_field_list(CloneType.E2E, 7, 3);
            hdr.extra.setValid();
            hdr.extra.value = 0x11223344;
            truncate(32w21);
        } else if (hdr.r.what == 18) {
            hdr.r.setInvalid();
        } else if (hdr.r.what == 19 && meta.passes < 2) {
            hdr.extra.setValid();
            recirculate_preserving_field_list(3);
        }
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.r);
        packet.emit(hdr.extra);
    }
}

V1Switch(Parse(), Verify(), In(), Out(), Update(), Deparse()) main;
