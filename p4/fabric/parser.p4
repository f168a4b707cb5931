// Parser.
//
// Reads: the packet; the ingress port, to know a packet-out by it.
// Writes: headers, and the flow's fields in the metadata.
// Decides: what is a flow. A fragment has no ports, not even the first one, so that all fragments of
// a datagram take one path. IPv4 options and IPv6 extension headers end parsing. UDP port 4791 is
// RoCEv2 only when the datagram has room for BTH and invariant CRC. A packet-out that bypasses the
// pipeline is not looked into, so nothing can touch it.
//
// What has the shape of INT (type and version right, length plausible) is taken apart as INT, but is INT
// only if int_recognise.p4 says so: no flow field follows from it here, and the deparser puts the same
// bytes back.

#ifndef FABRIC_PARSER_P4
#define FABRIC_PARSER_P4

// The first 36 bits of shim and INT-MD header: type and version.
const bit<36> INT_SHAPE      = 0x100000002;
const bit<36> INT_SHAPE_MASK = 0xf0000000f;

parser FabricParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t std) {
    bit<8> int_words;

    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default:  parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition select(hdr.packet_out.submit_to_ingress) {
            1:       parse_ethernet;
            default: accept;
        }
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        meta.ether_type = hdr.ethernet.ether_type;
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_LINK: parse_link;
            ETHERTYPE_ARP:  parse_arp;
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        meta.ether_type = hdr.vlan.ether_type;
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_ARP:  parse_arp;
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default:        accept;
        }
    }

    state parse_link {
        packet.extract(hdr.link);
        transition select(hdr.link.version, hdr.link.kind) {
            (LINK_VERSION, LINK_HELLO): parse_hello;
            (LINK_VERSION, LINK_PROBE): parse_probe;
            default:                    accept;
        }
    }

    state parse_hello {
        packet.extract(hdr.hello);
        transition accept;
    }

    state parse_probe {
        packet.extract(hdr.probe);
        transition accept;
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.src_addr = IPV4_MAPPED | (bit<128>)hdr.ipv4.src_addr;
        meta.dst_addr = IPV4_MAPPED | (bit<128>)hdr.ipv4.dst_addr;
        meta.ip_protocol = hdr.ipv4.protocol;
        meta.dscp = hdr.ipv4.dscp;
        meta.ttl = hdr.ipv4.ttl;
        transition select(hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (5, 0, 0, PROTO_ICMP): parse_icmp;
            (5, 0, 0, PROTO_TCP):  parse_tcp4;
            (5, 0, 0, PROTO_UDP):  parse_udp;
            default:               accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        meta.src_addr = hdr.ipv6.src_addr;
        meta.dst_addr = hdr.ipv6.dst_addr;
        meta.ip_protocol = hdr.ipv6.next_header;
        meta.dscp = hdr.ipv6.dscp;
        meta.ttl = hdr.ipv6.hop_limit;
        transition select(hdr.ipv6.next_header) {
            PROTO_ICMPV6: parse_icmp;
            PROTO_TCP:    parse_tcp6;
            PROTO_UDP:    parse_udp;
            default:      accept;
        }
    }

    state parse_icmp {
        packet.extract(hdr.icmp);
        meta.trap_port = (bit<16>)hdr.icmp.type;
        transition accept;
    }

    state parse_tcp4 {
        meta.l4_len = hdr.ipv4.total_len - 20;
        transition parse_tcp;
    }

    state parse_tcp6 {
        meta.l4_len = hdr.ipv6.payload_len;
        transition parse_tcp;
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src_port;
        meta.flow_port = hdr.tcp.src_port;
        meta.dst_port = hdr.tcp.dst_port;
        meta.trap_port = hdr.tcp.dst_port;
        transition select(meta.l4_len) {
            0 .. 35: accept;   // TCP 20 + INT 16
            default: look_for_int_in_tcp;
        }
    }

    state look_for_int_in_tcp {
        transition select(packet.lookahead<bit<36>>()) {
            INT_SHAPE &&& INT_SHAPE_MASK: size_int_in_tcp;
            default:                      accept;
        }
    }

    state size_int_in_tcp {
        int_words = packet.lookahead<bit<16>>()[7:0];
        meta.int_room = meta.l4_len - TCP_BYTES - 4 - ((bit<16>)int_words << 2);
        transition select(int_words, meta.int_room) {
            (INT_MD_WORDS .. INT_WORDS_MAX, 0 .. 0x7fff): parse_int_in_tcp;
            default:                                      accept;
        }
    }

    state parse_int_in_tcp {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_md);
        packet.extract(hdr.int_stack, (bit<32>)(int_words - INT_MD_WORDS) << 5);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src_port;
        meta.flow_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        meta.trap_port = hdr.udp.dst_port;
        transition select(hdr.udp.length) {
            0 .. 23: accept;   // UDP 8 + INT 16, or UDP 8 + BTH 12 + ICRC 4
            default: look_into_udp;
        }
    }

    state look_into_udp {
        transition select(packet.lookahead<bit<36>>(), hdr.udp.dst_port) {
            (INT_SHAPE &&& INT_SHAPE_MASK, _): size_int_in_udp;
            (_, UDP_PORT_ROCEV2):              parse_bth;
            default:                           accept;
        }
    }

    state size_int_in_udp {
        int_words = packet.lookahead<bit<16>>()[7:0];
        meta.int_room = hdr.udp.length - UDP_BYTES - 4 - ((bit<16>)int_words << 2);
        transition select(int_words, meta.int_room, hdr.udp.dst_port) {
            (INT_MD_WORDS .. INT_WORDS_MAX, 0 .. 0x7fff, _): parse_int_in_udp;
            (_, _, UDP_PORT_ROCEV2):                         parse_bth;
            default:                                         accept;
        }
    }

    state parse_int_in_udp {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_md);
        packet.extract(hdr.int_stack, (bit<32>)(int_words - INT_MD_WORDS) << 5);
        transition select(hdr.int_shim.npt, hdr.int_shim.field, hdr.udp.dst_port, meta.int_room) {
            (INT_NPT_IN_PLACE, _, UDP_PORT_ROCEV2, 16 .. 0x7fff): parse_bth_behind_int;
            (INT_NPT_PORT, UDP_PORT_ROCEV2, _, 16 .. 0x7fff):     parse_bth_behind_int;
            (INT_NPT_PROTOCOL, _, _, 4 .. 0x7fff):                look_at_inner_ports;
            default:                                              accept;
        }
    }

    state parse_bth_behind_int {
        packet.extract(hdr.bth);
        transition accept;
    }

    // TCP and UDP both begin with their ports.
    state look_at_inner_ports {
        bit<32> ports = packet.lookahead<bit<32>>();
        meta.inner_src_port = ports[31:16];
        meta.inner_dst_port = ports[15:0];
        transition accept;
    }

    state parse_bth {
        packet.extract(hdr.bth);
        meta.dest_qp = hdr.bth.dest_qp;
        meta.flow_port = 0;
        transition accept;
    }
}

#endif
