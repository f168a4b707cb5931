// Place: has the controller chosen this flow's path?
//
// Reads: the flow. RoCEv2 flows are known by destination QP; their UDP source port is only entropy and
// counts as 0 here (flow_port).
// Decides: the placed flow's next hop instead of the route's next hop or group; where it is watched and its far end
// is dead, or the path beyond it lost, the route's group after all, which knows who lives.
// Writes: nexthop_id, use_group.

#ifndef FABRIC_PLACE_P4
#define FABRIC_PLACE_P4

control Place(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Alive() alive;
    port_t watched = 0;
    bit<32> age = 0;
    bit<1> dead = 0;
    bit<1> lost = 0;
    bit<1> gray = 0;
    quality_t path_band = 0;

    @brief("Packets and bytes of each placed flow.")
    direct_counter(CounterType.packets_and_bytes) placed_flow_counter;

    @brief("The flow leaves by next hop `nexthop_id`.")
    action place(bit<32> nexthop_id) {
        meta.use_group = 0;
        meta.nexthop_id = nexthop_id;
    }

    @brief("The flow leaves by next hop `nexthop_id`, as long as the neighbour at `port` lives and the path beyond it was probed within `path_age` us (0: is not looked at); else as its route says, where that is a group.")
    action place_watched(bit<32> nexthop_id, port_t port, bit<32> path_age) {
        meta.nexthop_id = nexthop_id;
        watched = port;
        age = path_age;
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
        actions = { place; place_watched; NoAction; }
        const default_action = NoAction();
        counters = placed_flow_counter;
        size = 65536;
    }

    apply {
        placed_flow.apply();
        if (watched != 0 && meta.use_group == 1) {
            alive.apply(watched, meta, age, std, dead, lost, gray, path_band);
            if (dead == 0 && lost == 0) {
                meta.use_group = 0;
            }
        }
    }
}

#endif
