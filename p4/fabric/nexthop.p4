// Next hop: out of which port, between which MAC addresses?
//
// Reads: nexthop_id; ingress port.
// Decides: the egress port; drop with reason no_nexthop, or same_port when the packet would go back
// where it came from (in a fabric of point-to-point links that is a loop, never a path).
// Writes: egress_spec, the new MAC addresses, routed.

#ifndef FABRIC_NEXTHOP_P4
#define FABRIC_NEXTHOP_P4

control NextHop(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action no_nexthop() {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = DROP_NO_NEXTHOP;
    }

    @hidden
    action same_port() {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = DROP_SAME_PORT;
    }

    @brief("Out of `port`, from `src_mac` to `dst_mac`.")
    action forward(port_t port, bit<48> src_mac, bit<48> dst_mac) {
        std.egress_spec = port;
        meta.new_src_mac = src_mac;
        meta.new_dst_mac = dst_mac;
        meta.routed = 1;
    }

    @brief("Next hops: egress port and MAC addresses.")
    table nexthop {
        key = { meta.nexthop_id: exact @name("nexthop_id"); }
        actions = { forward; @defaultonly no_nexthop; }
        const default_action = no_nexthop();
        size = 4096;
    }

    apply {
        if (nexthop.apply().hit) {
            if (std.egress_spec == std.ingress_port) {
                same_port();
            }
        }
    }
}

#endif
