// One of everything that a control plane can write or hear of.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files control.p4info.txt -o control.json control.p4
#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> len;
    bit<16> id;
    bit<16> frag;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct learn_t {
    bit<48> src;
    port_t port;
}

struct metadata_t {
    bit<2> color;
}

const port_t CPU = 510;

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    value_set<bit<16>>(4) as_ipv4;
    state start {
        transition select(std.ingress_port) {
            CPU: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            as_ipv4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control Pipe(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) port_count;
    meter(16, MeterType.bytes) port_meter;
    register<bit<48>>(16) last_src;
    direct_counter(CounterType.packets_and_bytes) acl_count;
    direct_meter<bit<2>>(MeterType.packets) acl_meter;
    action_selector(HashAlgorithm.crc16, 64, 16) spread;
    action_profile(8) fixed;

    action send(port_t port) { std.egress_spec = port; }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action drop() { mark_to_drop(std); }
    @name("to_cpu") action to_cpu(bit<7> reason) {
        std.egress_spec = CPU;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.reason = reason;
    }
    action learn() { digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port }); }
    action mirror(bit<8> session) { clone(CloneType.I2E, (bit<32>)session); }

    table l2 {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; flood; to_cpu; @defaultonly drop; @tableonly mirror; NoAction; }
        default_action = drop();
        size = 8;
        support_timeout = true;
    }
    table known {
        key = { hdr.ethernet.src: exact; }
        actions = { learn; NoAction; }
        default_action = learn();
        size = 64;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { send; drop; }
        const default_action = drop();
        size = 1024;
    }
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.protocol: optional;
            hdr.ipv4.ttl: range;
            std.ingress_port: exact;
        }
        actions = { drop; NoAction; }
        counters = acl_count;
        meters = acl_meter;
        size = 16;
    }
    table groups {
        key = {
            hdr.ipv4.tos: exact;
            hdr.ipv4.src: selector;
            hdr.ipv4.dst: selector;
        }
        actions = { send; drop; }
        implementation = spread;
        size = 16;
    }
    table indirect {
        key = { hdr.ethernet.type: exact; }
        actions = { send; drop; }
        implementation = fixed;
    }
    table fixed_types {
        key = { hdr.ethernet.type: ternary; }
        actions = { to_cpu; NoAction; }
        const entries = {
            0x88cc: to_cpu(3);
            0x8000 &&& 0x8000: NoAction();
        }
    }
    table keyless {
        actions = { NoAction; drop; }
        default_action = NoAction();
    }

    apply {
        port_count.count((bit<32>)std.ingress_port);
        port_meter.execute_meter((bit<32>)std.ingress_port, meta.color);
        last_src.write((bit<32>)std.ingress_port, hdr.ethernet.src);
        keyless.apply();
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            known.apply();
            l2.apply();
            if (hdr.ipv4.isValid()) {
                acl_meter.read(meta.color);
                if (std.egress_spec == 0) {
                    routes.apply();
                    groups.apply();
                }
                acl.apply();
            }
            indirect.apply();
            fixed_types.apply();
        }
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), Verify(), Pipe(), Out(), Update(), Deparse()) main;
