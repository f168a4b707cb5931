// Route: where does the destination address lead?
//
// Reads: VRF, destination address, TTL, fragment offset.
// Decides: next hop, group, or punt (own address: the entry's reason; TTL used up: ttl). No route, or a
// route that says so, drops. TTL is looked at only here: a packet for the switch itself may arrive with
// its last hop spent. A later fragment is dropped, not punted, as no ICMP error may answer it (RFC 1812
// section 4.3.2.7).
// Writes: use_group, group_id, nexthop_id.

#ifndef FABRIC_ROUTE_P4
#define FABRIC_ROUTE_P4

control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @brief("Out by next hop `nexthop_id`.")
    action route_nexthop(bit<32> nexthop_id) {
        meta.nexthop_id = nexthop_id;
    }

    @brief("Spread over group `group_id`.")
    action route_group(bit<32> group_id) {
        meta.use_group = 1;
        meta.group_id = group_id;
    }

    @brief("Drop, as a destination without a route.")
    action route_drop() {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = DROP_NO_ROUTE;
    }

    @brief("An address of the switch itself: to the CPU port with `reason`.")
    action route_cpu(punt_reason_t reason) {
        meta.verdict = VERDICT_PUNT;
        meta.punt_reason = reason;
    }

    @brief("IPv4 routes by VRF, longest prefix first.")
    table route_v4 {
        key = {
            meta.vrf:          exact @name("vrf");
            hdr.ipv4.dst_addr: lpm   @name("dst_addr");
        }
        actions = { route_nexthop; route_group; route_drop; route_cpu; }
        const default_action = route_drop();
        size = 16384;
    }

    @brief("IPv6 routes by VRF, longest prefix first.")
    table route_v6 {
        key = {
            meta.vrf:          exact @name("vrf");
            hdr.ipv6.dst_addr: lpm   @name("dst_addr");
        }
        actions = { route_nexthop; route_group; route_drop; route_cpu; }
        const default_action = route_drop();
        size = 16384;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            route_v4.apply();
        } else {
            route_v6.apply();
        }
        if (meta.verdict == VERDICT_FORWARD && meta.ttl <= 1) {
            if (hdr.ipv4.isValid() && hdr.ipv4.fragment_offset != 0) {
                meta.verdict = VERDICT_DROP;
                meta.drop_reason = DROP_TTL;
            } else {
                meta.verdict = VERDICT_PUNT;
                meta.punt_reason = PUNT_TTL;
            }
        }
    }
}

#endif
