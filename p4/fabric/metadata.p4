// What the stages tell each other about one packet.
//
// The parser fills the flow's fields, so that tables and the hash see the same words for IPv4 and
// IPv6; every stage reads what is above it and writes its own lines.

#ifndef FABRIC_METADATA_P4
#define FABRIC_METADATA_P4

// What a report needs to know of the packet that it is about; a clone carries it.
struct report_t {
    bit<16> session;        // clone session; 0: no report
    bit<16> md_bits;
    bit<1>  dropped;
    bit<1>  congested;
    bit<1>  tracked;
    bit<1>  intermediate;   // from a hop before the sink, which pushed its own already
    bit<9>  ingress_port;
    bit<16> egress_port;
    bit<3>  queue;
    bit<19> depth;
    bit<48> ingress_time;   // us
    bit<48> egress_time;    // us
    bit<32> ingress_interface;   // logical ones; ones: not known
    bit<32> egress_interface;
    bit<32> utilisation;    // of 65536; ones: not measured
    drop_reason_t drop_reason;
    bit<16> frame_len;      // bytes from Ethernet on, of the packet as it is shown
    bit<1>  stripped;       // the next four undo what the sink restored
    bit<6>  dscp;
    bit<8>  protocol;
    bit<16> ip_len;
    bit<16> tcp_checksum;
}

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
    bit<16>  l4_len;        // TCP header and data, bytes
    bit<16>  int_room;      // what looks like INT: bytes of the datagram or segment behind it
    bit<16>  inner_src_port;   // ports behind INT and an added UDP header
    bit<16>  inner_dst_port;

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

    // domain
    bit<1>   dst_la_known;
    bit<32>  dst_la;

    // spread: port of the chosen member; 0: not known
    bit<9>   member_port;

    // egress: packets that went out of the port before this one
    bit<32>  sent;

    // next hop
    bit<1>   routed;        // rewrite the packet in egress
    bit<48>  new_src_mac;
    bit<48>  new_dst_mac;

    // INT: recognise, watch
    int_state_t int_state;
    bit<16>  int_instructions;   // source: what every hop shall tell
    bit<5>   int_hop_ml;         // source: words per hop
    bit<8>   int_max_hops;
    bit<16>  int_domain_id;
    bit<16>  int_indicator;      // DSCP or UDP port that tells the next hops
    bit<1>   int_by_port;

    // INT in egress
    bit<16>  ip_len;         // IP packet, bytes
    bit<16>  int_grow;       // bytes that came into the packet, or 65536 less those that went
    bit<32>  int_sum;        // 16-bit words that came, and complements of those that went
    bit<1>   int_stripped;   // INT went out: its bytes are still to be taken out of the checksum
    bit<16>  int_checksum;   // then: complement of the transport checksum so far
    bit<16>  int_complement; // then: complement of the sum of all INT bytes
    bit<1>   ecn_hit;        // ECN marked or dropped the packet here

    @field_list(FIELD_LIST_REPORT)
    report_t report;
}

#endif
