// Rewrite: make a routed packet the next hop's.
//
// Reads: the next hop's MAC addresses.
// Writes: MAC addresses, TTL or hop limit less one; a priority tag ends at the router.
// At the CPU port: the packet-in header in front of the packet as it came.

#ifndef FABRIC_REWRITE_P4
#define FABRIC_REWRITE_P4

control Rewrite(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @hidden
    action set_macs() {
        hdr.ethernet.src_addr = meta.new_src_mac;
        hdr.ethernet.dst_addr = meta.new_dst_mac;
        hdr.ethernet.ether_type = meta.ether_type;
        hdr.vlan.setInvalid();
    }

    @hidden
    action packet_in_header() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.reason = meta.punt_reason;
    }

    apply {
        if (meta.routed == 1) {
            set_macs();
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
            }
        }
        if (std.egress_port == CPU_PORT && !hdr.report_group.isValid()) {
            packet_in_header();
        }
    }
}

#endif
