// Egress: ECN, rewrite, and the counters of what is really sent.

#ifndef FABRIC_EGRESS_P4
#define FABRIC_EGRESS_P4

control FabricEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Ecn() ecn;
    Rewrite() rewrite;

    @brief("Packets sent; index: egress port.")
    counter(PORTS, CounterType.packets_and_bytes) port_tx;

    @brief("Packets sent; index: egress_port << 3 | queue.")
    counter(PORT_QUEUES, CounterType.packets_and_bytes) queue_tx;

    apply {
        if (meta.routed == 1) {
            ecn.apply(hdr, meta, std);
        }
        if (meta.verdict != VERDICT_DROP) {
            rewrite.apply(hdr, meta, std);
            port_tx.count((bit<32>)std.egress_port);
            queue_tx.count((bit<32>)(std.egress_port ++ meta.queue));
        }
    }
}

#endif
