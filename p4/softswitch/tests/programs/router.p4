// An IPv4 router: longest prefix, a group of next hops to choose from by flow,
// an access list, ECN marking by queue depth, checksums both ways.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files router.p4info.txt -o router.json router.p4
#include <core.p4>
#include <v1model.p4>

typedef bit<9> port_t;
typedef bit<48> mac_t;

header ethernet_t {
    mac_t dst;
    mac_t src;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> len;
    bit<16> id;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
}

struct metadata_t {
    bit<19> threshold;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.fragment, hdr.ipv4.ihl, hdr.ipv4.protocol) {
            (0, 5, 6): ports;
            (0, 5, 17): ports;
            default: accept;
        }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control Check(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len,
              hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc32, 1024, 16) paths;
    direct_counter(CounterType.packets_and_bytes) denied;

    action drop() {
        mark_to_drop(std);
    }

    action forward(port_t port, mac_t src, mac_t dst) {
        std.egress_spec = port;
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action permit() {
        denied.count();
    }

    action deny() {
        denied.count();
        mark_to_drop(std);
        exit;
    }

    table route {
        key = {
            hdr.ipv4.dst: lpm;
            hdr.ipv4.src: selector;
            hdr.ipv4.dst: selector;
            hdr.ipv4.protocol: selector;
            hdr.ports.src: selector;
            hdr.ports.dst: selector;
        }
        actions = { forward; drop; }
        implementation = paths;
        size = 1048576;
    }

    table acl {
        key = {
            std.ingress_port: ternary;
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ports.src: ternary;
            hdr.ports.dst: ternary;
        }
        actions = { permit; deny; NoAction; }
        const default_action = NoAction();
        counters = denied;
        size = 16384;
    }

    apply {
        if (std.checksum_error == 1 || !hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            acl.apply();
            if (route.apply().miss) {
                drop();
            }
        }
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action mark_above(bit<19> depth) {
        meta.threshold = depth;
    }

    table ecn {
        key = { std.egress_port: exact; }
        actions = { mark_above; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    apply {
        if (hdr.ipv4.ecn == 1 || hdr.ipv4.ecn == 2) {
            if (ecn.apply().hit && std.deq_qdepth >= meta.threshold) {
                hdr.ipv4.ecn = 3;
            }
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len,
              hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(Parse(), Check(), In(), Out(), Update(), Deparse()) main;
