// Punt: packets that the controller wants to see whoever they are addressed to (ARP, neighbour
// discovery, LLDP, liveness).
//
// Reads: Ethernet type and destination, IP protocol, destination port (ICMP: message type).
// Decides: punt, with the entry's reason. What the controller itself submits is not punted back.
// TTL expiry and the switch's own addresses are found later, by route.p4.

#ifndef FABRIC_PUNT_P4
#define FABRIC_PUNT_P4

control Punt(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @brief("Send the packet to the CPU port with `reason`.")
    action punt(punt_reason_t reason) {
        meta.verdict = VERDICT_PUNT;
        meta.punt_reason = reason;
    }

    @brief("Packets that go to the CPU port before any routing.")
    @description("l4_dst_port is the UDP or TCP destination port; for ICMP and ICMPv6 it is the message type.")
    table trap {
        key = {
            meta.ether_type:       ternary @name("ether_type");
            hdr.ethernet.dst_addr: ternary @name("dst_mac");
            meta.ip_protocol:      ternary @name("ip_protocol");
            meta.trap_port:        ternary @name("l4_dst_port");
        }
        actions = { punt; NoAction; }
        const default_action = NoAction();
        size = 128;
    }

    apply {
        if (std.ingress_port != CPU_PORT) {
            trap.apply();
        }
    }
}

#endif
