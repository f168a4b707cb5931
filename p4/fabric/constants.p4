// Every number of the pipeline that has a name, in one place.
//
// The controller and the tests rely on the punt and drop reasons below; they are part of the
// pipeline's interface and are never renumbered.

#ifndef FABRIC_CONSTANTS_P4
#define FABRIC_CONSTANTS_P4

// --- Ports ---------------------------------------------------------------------------------
typedef bit<9> port_t;
const port_t CPU_PORT = 510;   // packet-in and packet-out; bmv2: --cpu-port 510

// --- What a port is for --------------------------------------------------------------------
typedef bit<2> role_t;
const role_t ROLE_OFF    = 0;
const role_t ROLE_HOST   = 1;
const role_t ROLE_FABRIC = 2;
const role_t ROLE_CPU    = 3;

// --- What has been decided about a packet so far -------------------------------------------
typedef bit<2> verdict_t;
const verdict_t VERDICT_FORWARD = 0;   // on its way through the stages
const verdict_t VERDICT_PUNT    = 1;   // to the CPU port, with a punt reason
const verdict_t VERDICT_DROP    = 2;   // counted under a drop reason
const verdict_t VERDICT_SEND    = 3;   // packet-out to a given port, no stage touches it

// --- Why a packet goes to the CPU ----------------------------------------------------------
// The pipeline itself raises ttl and acl; the others come with `trap` and `route_cpu` entries.
typedef bit<7> punt_reason_t;
const punt_reason_t PUNT_ARP      = 1;   // ARP
const punt_reason_t PUNT_ND       = 2;   // IPv6 neighbour discovery
const punt_reason_t PUNT_LLDP     = 3;   // LLDP
const punt_reason_t PUNT_TTL      = 4;   // TTL or hop limit used up
const punt_reason_t PUNT_ACL      = 5;   // an `acl` entry asks for it
const punt_reason_t PUNT_LIVENESS = 6;   // liveness packet of a neighbour
const punt_reason_t PUNT_INT_REPORT = 7; // telemetry report for a collector behind the controller

// --- Why a packet is dropped ---------------------------------------------------------------
typedef bit<5> drop_reason_t;
const drop_reason_t DROP_PARSER      = 0;    // truncated, or IP header with a wrong version or length
const drop_reason_t DROP_CHECKSUM    = 1;    // IPv4 header checksum wrong
const drop_reason_t DROP_TTL         = 2;    // TTL used up on a fragment nobody may answer
const drop_reason_t DROP_PORT_OFF    = 3;    // port has no role
const drop_reason_t DROP_NOT_STATION = 4;    // sent to a unicast MAC that is not the switch's
const drop_reason_t DROP_NO_ROUTE    = 5;    // no route, or a route that says drop
const drop_reason_t DROP_NO_GROUP    = 6;    // group or bucket unknown, or group without members
const drop_reason_t DROP_NO_NEXTHOP  = 7;    // next hop unknown
const drop_reason_t DROP_ACL         = 8;    // denied by `acl`
const drop_reason_t DROP_SAME_PORT   = 9;    // would leave by the port it came in on
const drop_reason_t DROP_ECN         = 10;   // Not-ECT packet hit by the marking law
const drop_reason_t DROP_VLAN        = 11;   // tagged for a VLAN; ports are untagged
const drop_reason_t DROP_NOT_ROUTED  = 12;   // group MAC, or neither IPv4 nor IPv6
const drop_reason_t DROP_MARTIAN     = 13;   // address that must not cross a router
const drop_reason_t DROP_IP_OPTIONS  = 14;   // IPv4 header with options
const drop_reason_t DROP_INT         = 15;   // INT: forged by a host, or ends at the sink (flag D)
const drop_reason_t DROP_NO_LIVE_MEMBER = 16;   // every member of the group is dead

// --- Where a packet's bytes go, seen from the LA domain it enters by -----------------------
typedef bit<2> locality_t;
const locality_t LOCALITY_LOCAL    = 0;   // stays in the LA domain
const locality_t LOCALITY_CROSSING = 1;   // leaves it
const locality_t LOCALITY_TRANSIT  = 2;   // already counted where it entered the fabric
const locality_t LOCALITY_UNKNOWN  = 3;   // destination's LA domain not known

// --- Queues --------------------------------------------------------------------------------
// bmv2 needs `--priority-queues 8`: it drops a packet whose queue does not exist.
const bit<3> QUEUE_CONTROL = 7;   // CNPs, punted packets and packet-outs

// --- Ethernet ------------------------------------------------------------------------------
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP  = 0x0806;
const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<48> MAC_GROUP_BIT  = 0x010000000000;
const bit<12> VID_PRIORITY   = 0;   // priority-tagged: PCP only, no VLAN (IEEE 802.1Q 9.6)

// --- IP ------------------------------------------------------------------------------------
const bit<8> PROTO_ICMP   = 1;
const bit<8> PROTO_TCP    = 6;
const bit<8> PROTO_UDP    = 17;
const bit<8> PROTO_ICMPV6 = 58;

const bit<2> ECN_NOT_ECT = 0;   // RFC 3168 section 5
const bit<2> ECN_CE      = 3;

const bit<128> IPV4_MAPPED = 0xffff00000000;   // ::ffff:0:0/96, RFC 4291 section 2.5.5.2

// --- RoCEv2 --------------------------------------------------------------------------------
const bit<16> UDP_PORT_ROCEV2 = 4791;
const bit<8>  BTH_OPCODE_CNP  = 0x81;

// --- INT-MD v2.1 ---------------------------------------------------------------------------
const bit<4>  INT_VERSION      = 2;
const bit<4>  INT_TYPE_MD      = 1;
const bit<2>  INT_NPT_IN_PLACE = 0;   // DSCP says that INT is there; its own transport follows
const bit<2>  INT_NPT_PORT     = 1;   // the shim keeps the UDP destination port
const bit<2>  INT_NPT_PROTOCOL = 2;   // a UDP header was added; the shim keeps the IP protocol
const bit<8>  INT_MD_WORDS     = 3;   // of the INT-MD header, as the shim counts length
const bit<8>  INT_WORDS_MAX    = 67;  // header and stack: as much as the parser takes
const bit<16> INT_FIXED_BYTES  = 16;  // shim and INT-MD header
const bit<16> INT_UDP_BYTES    = 8;   // the added UDP header
#define INT_STACK_BITS 2048           // (INT_WORDS_MAX - INT_MD_WORDS) * 32

typedef bit<2> int_state_t;
const int_state_t INT_NONE    = 0;   // the packet is not measured
const int_state_t INT_CARRIED = 1;   // it carries INT from an earlier hop
const int_state_t INT_SOURCE  = 2;   // it is measured from here on

// --- Telemetry Report v2.0 -----------------------------------------------------------------
const bit<4>  REPORT_VERSION    = 2;
const bit<4>  REPORT_TYPE_INT   = 1;
const bit<4>  REPORT_INNER_IPV4 = 4;
const bit<4>  REPORT_INNER_IPV6 = 5;
const bit<16> REPORT_BITS_PATH  = 0x7f80;  // what the sink can report of the instructions: bits 1 to 8
const bit<16> REPORT_BITS_QUEUE = 0x7c00;  // interfaces, latency, queue, both times
const bit<16> REPORT_BITS_DROP  = 0x4801;  // interfaces, ingress time, drop reason
const bit<16> REPORT_INNER_MAX  = 72;      // bytes of the packet that are reported, INT not counted
const bit<16> INTERFACE_UNKNOWN = 0xffff;
const bit<32> UNKNOWN_32        = 0xffffffff;   // INT: what a node cannot tell is ones
const bit<8>  REPORT_TTL        = 64;
const bit<16> REPORT_UDP_FIXED_BYTES = 20; // UDP 8, group header 8, first word of the report 4

// Cells of int_report_meter.
const bit<32> REPORT_METER_PATH  = 0;
const bit<32> REPORT_METER_DROP  = 1;
const bit<32> REPORT_METER_QUEUE = 2;
#define REPORT_KINDS      3
#define REPORT_COLLECTORS 16
#define FIELD_LIST_REPORT 1

// v1model: standard_metadata.instance_type of a packet cloned from ingress, and from egress.
const bit<32> INSTANCE_INGRESS_CLONE = 1;
const bit<32> INSTANCE_EGRESS_CLONE  = 2;

const bit<2> METER_GREEN = 0;
const bit<2> METER_RED   = 2;

const bit<64> NS_PER_US = 1000;   // v1model tells time in microseconds

// --- Flow hash: multipliers of the 32-bit bit mixer in spread.p4 (odd, dense in set bits) ----
const bit<32> HASH_MULTIPLIER_1 = 0x85ebca6b;
const bit<32> HASH_MULTIPLIER_2 = 0xc2b2ae35;

// --- Bytes of headers ----------------------------------------------------------------------
const bit<16> PACKET_IN_BYTES = 2;
const bit<16> ETHERNET_BYTES  = 14;
const bit<16> IPV4_BYTES      = 20;
const bit<16> IPV6_BYTES      = 40;
const bit<16> TCP_BYTES       = 20;
const bit<16> UDP_BYTES       = 8;
const bit<16> UDP_LENGTH_MAX  = 0x3fff;   // that a packet of any MTU here can really have

const bit<32> HASH_MULTIPLIER_3 = 0x9e3779b1;   // a second, independent choice from the same hash

// --- Adaptive ECMP ---------------------------------------------------------------------------
// Modes, named as the Switch Abstraction Interface names them (SAI_ARS_MODE_*).
typedef bit<3> ars_mode_t;
const ars_mode_t ARS_FIXED              = 0;   // a flow keeps the bucket that its hash gives it
const ars_mode_t ARS_FLOWLET_RANDOM     = 1;   // every burst of a flow takes any bucket
const ars_mode_t ARS_FLOWLET_QUALITY    = 2;   // every burst of a flow takes the best of a few
const ars_mode_t ARS_PER_PACKET_RANDOM  = 3;   // every packet takes any bucket
const ars_mode_t ARS_PER_PACKET_QUALITY = 4;   // every packet takes the best of a few

typedef bit<8> quality_t;                      // bands of congestion, 0 is idle
const quality_t QUALITY_LOCAL_MOST = 63;       // no port is more congested than this
const quality_t QUALITY_PATH_MOST  = 63;       // nor any path; also a path that nothing is known of
const quality_t QUALITY_GRAY       = 64;       // a link that loses packets, on top
const quality_t QUALITY_DEAD       = 255;      // never chosen

// --- Links between neighbours ----------------------------------------------------------------
const bit<16> ETHERTYPE_LINK = 0x88b5;   // IEEE 802 local experimental Ethertype 1
const bit<4>  LINK_VERSION   = 1;
const bit<4>  LINK_HELLO     = 1;        // are you there, and do my packets arrive?
const bit<4>  LINK_PROBE     = 2;        // how congested is the way to an LA domain?
const bit<8>  PROBE_HOPS     = 8;        // a probe that went farther goes in circles

// --- Sizes ---------------------------------------------------------------------------------
#define PORTS        512
#define PORT_QUEUES  4096    // port << 3 | queue
#define PORT_DROPS   16384   // ingress port << 5 | drop reason
#define PORT_LOCALITY 2048   // ingress port << 2 | locality class
#define FLOWLETS     16384   // bursts that are told apart; hash of the flow
#define MEMBER_HINTS 16384   // group * odd + bucket
#define LA_DOMAINS   512     // low bits of the LA domain's number
#define LA_PATHS     65536   // low 9 bits of the LA domain << 7 | low 7 bits of the port

#endif
