// Headers on the wire, in wire order.
//
// A telemetry report stands before the packet that it is about; INT stands between a transport header
// and what it carries. A new header goes into `headers_t` and the deparser at the same place.

#ifndef FABRIC_HEADERS_P4
#define FABRIC_HEADERS_P4

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<1> submit_to_ingress;   // 1: routed like any packet, 0: out of egress_port untouched
    bit<6> pad;
}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header vlan_t {
    bit<3>  pcp;
    bit<1>  dei;
    bit<12> vid;
    bit<16> ether_type;
}

header arp_t {
    bit<16> hw_type;
    bit<16> proto_type;
    bit<8>  hw_len;
    bit<8>  proto_len;
    bit<16> operation;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header ipv6_t {
    bit<4>   version;
    bit<6>   dscp;
    bit<2>   ecn;
    bit<20>  flow_label;
    bit<16>  payload_len;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src_addr;
    bit<128> dst_addr;
}

header icmp_t {
    bit<8>  type;
    bit<8>  code;
    bit<16> checksum;
}

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq_no;
    bit<32> ack_no;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// InfiniBand Base Transport Header, IBTA volume 1, section 9.2; over UDP: annex A17.
header bth_t {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  mig_req;
    bit<2>  pad_count;
    bit<4>  version;
    bit<16> pkey;
    bit<1>  fecn;
    bit<1>  becn;
    bit<6>  reserved1;
    bit<24> dest_qp;
    bit<1>  ack_req;
    bit<7>  reserved2;
    bit<24> psn;
}

// INT shim over TCP and UDP, INT-MD v2.1 section 5.7.2.
header int_shim_t {
    bit<4>  type;
    bit<2>  npt;
    bit<2>  reserved;
    bit<8>  length;   // words of 4 bytes behind the shim: INT-MD header and stack
    bit<16> field;    // by npt: reserved, DSCP, reserved; UDP port; reserved, IP protocol
}

// INT-MD header, section 5.8.
header int_md_t {
    bit<4>  version;
    bit<1>  discard;
    bit<1>  hops_exceeded;
    bit<1>  mtu_exceeded;
    bit<12> reserved;
    bit<5>  hop_ml;   // words that every hop adds
    bit<8>  remaining_hops;
    bit<16> instructions;
    bit<16> domain_id;
    bit<16> ds_instructions;
    bit<16> ds_flags;
}

// What one hop pushes, in the order of the instruction bits; each is valid if its bit asks for it.
header int_node_t     { bit<32> id; }
header int_ports_t    { bit<16> ingress; bit<16> egress; }
header int_latency_t  { bit<32> ns; }
header int_queue_t    { bit<8> id; bit<24> depth; }
header int_time_t     { bit<64> ns; }
header int_interfaces_t  { bit<32> ingress; bit<32> egress; }
header int_utilisation_t { bit<32> share; }   // of 65536
header int_buffer_t   { bit<8> id; bit<24> occupancy; }
// Ones, for what a switch cannot tell; the sizes add up to any number of words from 0 to 31.
header int_ones_1_t   { bit<32> ones; }
header int_ones_2_t   { bit<64> ones; }
header int_ones_4_t   { bit<128> ones; }
header int_ones_8_t   { bit<256> ones; }
header int_ones_16_t  { bit<512> ones; }

// What the hops before pushed.
header int_stack_t { varbit<INT_STACK_BITS> words; }

// Telemetry Report v2.0, sections 3.2 and 3.3; the headers of the RepType INT contents.
header report_group_t {
    bit<4>  version;
    bit<6>  hw_id;
    bit<22> sequence;
    bit<32> node_id;
}

header report_item_t {
    bit<4>  rep_type;
    bit<4>  in_type;
    bit<8>  length;      // words behind this one
    bit<8>  md_length;   // words of metadata among them
    bit<1>  dropped;
    bit<1>  congested;
    bit<1>  tracked;
    bit<1>  intermediate;
    bit<4>  reserved;
    bit<16> md_bits;
    bit<16> domain_id;
    bit<16> ds_md_bits;
    bit<16> ds_md_status;
}

header report_drop_t { bit<8> queue; bit<8> reason; bit<16> pad; }

// Between neighbouring switches, behind the Ethernet header. See docs/explanation-ars.md.
header link_t {
    bit<4> version;
    bit<4> kind;
}

header hello_t {
    bit<1>  deaf;       // the sender has not heard from its neighbour for the detection time
    bit<1>  gray;       // the sender loses what its neighbour sends
    bit<6>  reserved;
    bit<32> sent;       // packets the sender has put on this link before this one
}

header probe_t {
    bit<8>  hops;
    bit<8>  band;       // congestion of the way to the LA domain, from the sender on
    bit<32> la;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    vlan_t       vlan;
    link_t       link;
    hello_t      hello;
    probe_t      probe;
    arp_t        arp;

    // A report, before the packet that it is about.
    ipv4_t         report_ipv4;
    udp_t          report_udp;
    report_group_t report_group;
    report_item_t  report_item;
    int_ports_t    report_ports;
    int_latency_t  report_latency;
    int_queue_t    report_queue;
    int_time_t     report_ingress_time;
    int_time_t     report_egress_time;
    int_interfaces_t  report_interfaces;
    int_utilisation_t report_utilisation;
    int_buffer_t   report_buffer;
    report_drop_t  report_drop;

    ipv4_t       ipv4;
    ipv6_t       ipv6;
    icmp_t       icmp;
    tcp_t        tcp;
    udp_t        udp;

    int_shim_t    int_shim;
    int_md_t      int_md;
    int_node_t    int_node;
    int_ports_t   int_ports;
    int_latency_t int_latency;
    int_queue_t   int_queue;
    int_time_t    int_ingress_time;
    int_time_t    int_egress_time;
    int_interfaces_t  int_interfaces;
    int_utilisation_t int_utilisation;
    int_buffer_t  int_buffer;
    int_ones_1_t  int_ones_1;
    int_ones_2_t  int_ones_2;
    int_ones_4_t  int_ones_4;
    int_ones_8_t  int_ones_8;
    int_ones_16_t int_ones_16;
    int_stack_t   int_stack;

    tcp_t        inner_tcp;   // TCP behind an added UDP header and INT
    bth_t        bth;

    // Never sent: what the sink takes out of a packet, kept for the report about it.
    udp_t        kept_udp;
    int_shim_t   kept_shim;
    int_md_t     kept_md;
    int_stack_t  kept_stack;
}

#endif
