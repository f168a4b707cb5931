// Parser.
//
// Reads: the packet; the ingress port, to know a packet-out by it.
// Writes: headers, and the flow's fields in the metadata.
// Decides: what is a flow. A fragment has no ports, not even the first one, so that all fragments of
// a datagram take one path. IPv4 options and IPv6 extension headers end parsing. UDP port 4791 is
// RoCEv2 only when the datagram has room for BTH and invariant CRC. A packet-out that bypasses the
// pipeline is not looked into, so nothing can touch it.

#ifndef FABRIC_PARSER_P4
#define FABRIC_PARSER_P4

parser FabricParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t std) {
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
            (5, 0, 0, PROTO_TCP):  parse_tcp;
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
            PROTO_TCP:    parse_tcp;
            PROTO_UDP:    parse_udp;
            default:      accept;
        }
    }

    state parse_icmp {
        packet.extract(hdr.icmp);
        meta.trap_port = (bit<16>)hdr.icmp.type;
        transition accept;
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src_port;
        meta.flow_port = hdr.tcp.src_port;
        meta.dst_port = hdr.tcp.dst_port;
        meta.trap_port = hdr.tcp.dst_port;
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src_port;
        meta.flow_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        meta.trap_port = hdr.udp.dst_port;
        transition select(hdr.udp.dst_port, hdr.udp.length) {
            (UDP_PORT_ROCEV2, 0 .. 23): accept;   // UDP 8 + BTH 12 + ICRC 4 = 24
            (UDP_PORT_ROCEV2, _):       parse_bth;
            default:                    accept;
        }
    }

    state parse_bth {
        packet.extract(hdr.bth);
        meta.dest_qp = hdr.bth.dest_qp;
        meta.flow_port = 0;
        transition accept;
    }
}

#endif
