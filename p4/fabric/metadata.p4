// What the stages tell each other about one packet.
//
// The parser fills the flow's fields, so that tables and the hash see the same words for IPv4 and
// IPv6; every stage reads what is above it and writes its own lines.

#ifndef FABRIC_METADATA_P4
#define FABRIC_METADATA_P4

struct metadata_t {
    // Parser: the flow. IPv4 addresses are IPv4-mapped IPv6 addresses. Ports are 0 where there
    // are none (other protocols) or where not every packet of the flow has them (fragments).
    bit<16>  ether_type;    // behind the VLAN tag
    bit<128> src_addr;
    bit<128> dst_addr;
    bit<8>   ip_protocol;
    bit<6>   dscp;
    bit<8>   ttl;
    bit<16>  src_port;
    bit<16>  dst_port;
    bit<24>  dest_qp;       // 0 unless RoCEv2
    bit<16>  flow_port;     // src_port; 0 for RoCEv2, where it is entropy and names no flow
    bit<16>  trap_port;     // dst_port; for ICMP and ICMPv6 the message type

    // check
    role_t   role;
    bit<16>  vrf;
    bit<32>  ingress_la;

    // any stage
    verdict_t     verdict;
    punt_reason_t punt_reason;
    drop_reason_t drop_reason;

    // classify
    bit<4>   tc;
    bit<3>   queue;

    // route, place, spread
    bit<1>   use_group;
    bit<32>  group_id;
    bit<32>  nexthop_id;

    // next hop
    bit<1>   routed;        // rewrite the packet in egress
    bit<48>  new_src_mac;
    bit<48>  new_dst_mac;
}

#endif
