// Place: has the controller chosen this flow's path?
//
// Reads: the flow. RoCEv2 flows are known by destination QP; their UDP source port is only entropy and
// counts as 0 here (flow_port).
// Decides: the placed flow's next hop instead of the route's next hop or group.

#ifndef FABRIC_PLACE_P4
#define FABRIC_PLACE_P4

control Place(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @brief("Packets and bytes of each placed flow.")
    direct_counter(CounterType.packets_and_bytes) placed_flow_counter;

    @brief("The flow leaves by next hop `nexthop_id`.")
    action place(bit<32> nexthop_id) {
        meta.use_group = 0;
        meta.nexthop_id = nexthop_id;
    }

    @brief("Flows with a path of their own, chosen by the controller.")
    @description("IPv4 addresses are IPv4-mapped (::ffff:a.b.c.d). For RoCEv2, src_port is 0 and dest_qp the destination QP; for all else dest_qp is 0.")
    table placed_flow {
        key = {
            meta.src_addr:    exact @name("src_addr");
            meta.dst_addr:    exact @name("dst_addr");
            meta.ip_protocol: exact @name("protocol");
            meta.flow_port:   exact @name("src_port");
            meta.dst_port:    exact @name("dst_port");
            meta.dest_qp:     exact @name("dest_qp");
        }
        actions = { place; NoAction; }
        const default_action = NoAction();
        counters = placed_flow_counter;
        size = 65536;
    }

    apply {
        placed_flow.apply();
    }
}

#endif
