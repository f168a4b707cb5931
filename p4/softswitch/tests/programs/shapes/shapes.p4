// Shapes that other programs seldom have: packets without an Ethernet header, options of any
// length, stacks of unions, fields of 512 bits, pushes and pops, entries with priorities, value
// sets, and a checksum over the payload. The first byte of the packet says which.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files shapes.p4info.txt -o shapes.json shapes.p4
#include <core.p4>
#include <v1model.p4>

header what_t {
    bit<8> what;
    bit<8> arg;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
    varbit<320> options;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

header label_t {
    bit<20> value;
    bit<3> tc;
    bit<1> bottom;
    bit<8> ttl;
}

header short_t {
    bit<8> kind;
    bit<8> value;
}

header long_t {
    bit<8> kind;
    bit<24> value;
}

header_union item_t {
    short_t s;
    long_t l;
}

header wide_t {
    bit<512> a;
    bit<512> b;
}

header result_t {
    bit<512> sum;
    bit<512> product;
    bit<512> shifted;
    bit<8> less;
    bit<16> part;
}

header key_t {
    bit<16> a;
    bit<16> b;
    bit<8> c;
    bit<8> hit;
}

header math_t {
    int<16> i;
    int<16> j;
    bit<16> u;
    bit<16> v;
    int<16> saturated;
    bit<16> usaturated;
    bit<16> parsed;
    int<16> shifted;
    bit<8> compared;
}

struct headers_t {
    what_t what;
    ipv4_t ip;
    udp_t udp;
    label_t[4] labels;
    item_t[3] items;
    wide_t wide;
    result_t result;
    key_t key;
    math_t math;
}

struct metadata_t {
    bit<16> payload_sum;
    @field_list(1)
    bit<8> passes;
    bit<8> state;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    value_set<bit<8>>(4) chosen;
    state start {
        packet.extract(hdr.what);
        transition select(hdr.what.what) {
            1: ip;
            2: labels;
            3: items;
            4: wide;
            5 .. 6: key;
            7 &&& 0xf7: math;
            8: ahead;
            chosen: chosen_state;
            default: accept;
        }
    }
    state chosen_state {
        meta.state = 0xcc;
        transition accept;
    }
    state ip {
        bit<8> first = packet.lookahead<bit<8>>();
        verify(first[7:4] == 4, error.NoMatch);
        verify(first[3:0] >= 5, error.HeaderTooShort);
        packet.extract(hdr.ip, ((bit<32>)first[3:0] - 5) * 32);
        transition select(hdr.ip.fragment[12:0], hdr.ip.protocol) {
            (0, 17): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
    state labels {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            0: labels;
            1: accept;
        }
    }
    state items {
        transition select(packet.lookahead<bit<8>>()) {
            0x01: item_short;
            0x02: item_long;
            default: accept;
        }
    }
    state item_short {
        packet.extract(hdr.items.next.s);
        transition items;
    }
    state item_long {
        packet.extract(hdr.items.next.l);
        transition items;
    }
    state wide {
        packet.extract(hdr.wide);
        transition accept;
    }
    state key {
        packet.extract(hdr.key);
        transition accept;
    }
    state math {
        packet.extract(hdr.math);
        transition accept;
    }
    state ahead {
        packet.advance((bit<32>)hdr.what.arg << 3);
        transition select(packet.lookahead<bit<16>>()) {
            0x0900 &&& 0xff00: accept;
            default: reject;
        }
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ip.isValid(),
            { hdr.ip.version, hdr.ip.ihl, hdr.ip.tos, hdr.ip.length, hdr.ip.id, hdr.ip.fragment,
              hdr.ip.ttl, hdr.ip.protocol, hdr.ip.src, hdr.ip.dst, hdr.ip.options },
            hdr.ip.checksum, HashAlgorithm.csum16);
    }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(8) totals;
    direct_meter<bit<8>>(MeterType.packets) coloured;

    action hit(bit<8> value) { hdr.key.hit = value; }
    action note(bit<8> value) {
        hdr.key.hit = value;
        coloured.read(hdr.key.c);
    }
    action miss() { hdr.key.hit = 0xee; }

    table classify {
        key = {
            hdr.key.a : ternary;
            hdr.key.b : range;
            hdr.key.c : optional;
        }
        actions = { hit; miss; }
        const default_action = miss();
        const entries = {
            (0x1200 &&& 0xff00, 10 .. 20, 7) : hit(1);
            (0x1200 &&& 0xff00, _, _) : hit(2);
            (_, 15 .. 30, _) : hit(3);
            (0x1234, 100, 9) : hit(4);
            (_, _, 9) : hit(5);
        }
    }
    table metered {
        key = { hdr.key.b : exact; }
        actions = { note; NoAction; }
        default_action = NoAction();
        meters = coloured;
    }
    action one() { hdr.key.a = hdr.key.a + 1; }
    action two() { hdr.key.a = hdr.key.a |+| 0xf000; }
    table chosen_action {
        key = { hdr.key.c : exact; }
        actions = { one; two; NoAction; }
        default_action = two();
        const entries = {
            1 : one();
            2 : NoAction();
        }
    }

    action pushes(bit<1> front) {
        hdr.labels.push_front(1);
        hdr.labels[0].setValid();
        hdr.labels[0] = { 0xabcde, 5, front, 64 };
    }

    apply {
        std.egress_spec = 2;
        if (hdr.what.what == 1) {
            hdr.what.arg = (bit<8>)(bit<1>)std.checksum_error;
            if (hdr.ip.isValid()) {
                hdr.ip.ttl = hdr.ip.ttl |-| 1;
                if (hdr.ip.ttl == 0) { mark_to_drop(std); exit; }
            } else {
                hdr.what.arg = 0xff;
            }
        } else if (hdr.what.what == 2) {
            if (hdr.what.arg == 1) { pushes(0); }
            else if (hdr.what.arg == 2) { hdr.labels.pop_front(1); }
            else if (hdr.what.arg == 3) { hdr.labels.pop_front(2); pushes(1); }
            else if (hdr.what.arg == 4) { hdr.labels[1] = hdr.labels[0]; }
            else if (hdr.what.arg == 5) { hdr.labels.push_front(3); }
            else if (hdr.what.arg == 6) { hdr.labels[2].setInvalid(); }
        } else if (hdr.what.what == 3) {
            if (hdr.what.arg == 1) {
                hdr.items[0].l.setValid();
                hdr.items[0].l = { 9, 0x010203 };
            } else if (hdr.what.arg == 2) {
                hdr.items[1].s.setInvalid();
            } else if (hdr.what.arg == 3) {
                hdr.items[2] = hdr.items[0];
            } else if (hdr.what.arg == 4 && hdr.items[1].s.isValid()) {
                hdr.items[1].s.value = hdr.items[1].s.value ^ 0xff;
            }
        } else if (hdr.what.what == 4 && hdr.wide.isValid()) {
            hdr.result.setValid();
            hdr.result.sum = hdr.wide.a + hdr.wide.b;
            hdr.result.product = hdr.wide.a * hdr.wide.b;
            hdr.result.shifted = (hdr.wide.a << hdr.what.arg) | (hdr.wide.b >> 252);
            hdr.result.less = hdr.wide.a < hdr.wide.b ? 8w1 : 8w0;
            hdr.result.part = hdr.wide.a[300:285];
            hdr.wide.b[260:245] = 0xffff;
        } else if (hdr.what.what == 5) {
            classify.apply();
            switch (chosen_action.apply().action_run) {
                one: { hdr.what.arg = 1; }
                two: { hdr.what.arg = 2; }
                default: { hdr.what.arg = 9; }
            }
        } else if (hdr.what.what == 6) {
            bit<32> total;
            bit<32> at = (bit<32>)hdr.key.c & 7;
            if (metered.apply().hit) {
                totals.read(total, at);
                total = (total << 3) - total + (bit<32>)hdr.key.a;
                totals.write(at, total);
                hdr.key.a = total[15:0];
            } else {
                totals.read(total, (bit<32>)hdr.what.arg);
                hdr.key.a = total[15:0];
                hdr.key.hit = total[23:16];
            }
        } else if (hdr.what.what == 7 && hdr.math.isValid()) {
            hdr.math.saturated = hdr.math.i |+| hdr.math.j;
            hdr.math.usaturated = hdr.math.u |-| hdr.math.v;
            hdr.math.parsed = (bit<16>)(hdr.math.i >> 3) ++ 8w0x5a == 24w0 ? 16w1 : hdr.math.u ^ ~hdr.math.v;
            hdr.math.shifted = hdr.math.j >> hdr.what.arg;
            hdr.math.compared = (bit<8>)(bit<1>)(hdr.math.i < hdr.math.j)
                | (bit<8>)(bit<1>)(hdr.math.u < hdr.math.v) << 1
                | (bit<8>)(bit<1>)(-hdr.math.i == hdr.math.j) << 2;
        } else if (hdr.what.what == 10) {
            meta.passes = meta.passes + 1;
        } else {
            hdr.what.arg = meta.state;
        }
    }
}

control Eg(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.what.what == 10 && hdr.what.arg != 0) {
            hdr.what.arg = hdr.what.arg - 1;
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0] = { (bit<20>)meta.passes, 0, 1, hdr.what.arg };
            recirculate_preserving_field_list(1);
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ip.isValid(),
            { hdr.ip.version, hdr.ip.ihl, hdr.ip.tos, hdr.ip.length, hdr.ip.id, hdr.ip.fragment,
              hdr.ip.ttl, hdr.ip.protocol, hdr.ip.src, hdr.ip.dst, hdr.ip.options },
            hdr.ip.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.udp.isValid(),
            { hdr.ip.src, hdr.ip.dst, 8w0, hdr.ip.protocol, hdr.udp.length,
              hdr.udp.src, hdr.udp.dst, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.what);
        packet.emit(hdr.ip);
        packet.emit(hdr.udp);
        packet.emit(hdr.labels);
        packet.emit(hdr.items);
        packet.emit(hdr.wide);
        packet.emit(hdr.result);
        packet.emit(hdr.key);
        packet.emit(hdr.math);
    }
}

V1Switch(Parse(), Verify(), In(), Eg(), Update(), Deparse()) main;
