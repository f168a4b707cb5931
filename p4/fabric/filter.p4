// Filter: does policy let the packet through?
//
// Reads: ingress port, flow, DSCP.
// Decides: permit (nothing changes), drop with reason acl, or punt with reason acl. Also asked about
// packets on their way to the CPU port by route or TTL, so that an entry can shield the controller.

#ifndef FABRIC_FILTER_P4
#define FABRIC_FILTER_P4

control Filter(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @brief("Packets and bytes that each entry matched.")
    direct_counter(CounterType.packets_and_bytes) acl_counter;

    @brief("Let the packet through.")
    action permit() {}

    @brief("Drop the packet.")
    action deny() {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = DROP_ACL;
    }

    @brief("Send the packet to the CPU port instead, with reason acl.")
    action acl_punt() {
        meta.verdict = VERDICT_PUNT;
        meta.punt_reason = PUNT_ACL;
    }

    @brief("Access list over routed packets; the entry of highest priority decides, no entry permits.")
    @description("IPv4 addresses are IPv4-mapped (::ffff:a.b.c.d).")
    table acl {
        key = {
            std.ingress_port: ternary @name("ingress_port");
            meta.src_addr:    ternary @name("src_addr");
            meta.dst_addr:    ternary @name("dst_addr");
            meta.ip_protocol: ternary @name("ip_protocol");
            meta.src_port:    ternary @name("src_port");
            meta.dst_port:    ternary @name("dst_port");
            meta.dscp:        ternary @name("dscp");
        }
        actions = { permit; deny; acl_punt; }
        const default_action = permit();
        counters = acl_counter;
        size = 1024;
    }

    apply {
        acl.apply();
    }
}

#endif
