// Egress: ECN, load, INT, rewrite, hellos, and the counters of what is really sent.
//
// Reads: whether the packet was routed; whether it is a clone, which becomes a report instead.
// Decides: a probe does not go back where it came from.
// Writes: counters of packets that leave; all else is the stages'.

#ifndef FABRIC_EGRESS_P4
#define FABRIC_EGRESS_P4

control FabricEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Ecn() ecn;
    IntHop() int_hop;
    IntEvents() int_events;
    IntReport() int_report;
    Rewrite() rewrite;
    Measure() measure;
    Speak() speak;

    @brief("Packets sent; index: egress port.")
    counter(PORTS, CounterType.packets_and_bytes) port_tx;

    @brief("Packets sent; index: egress_port << 3 | queue.")
    counter(PORT_QUEUES, CounterType.packets_and_bytes) queue_tx;

    @hidden
    action prune() {
        meta.verdict = VERDICT_DROP;
        mark_to_drop(std);
    }

    @hidden
    action count_sent() {
        sent_count.read(meta.sent, (bit<32>)std.egress_port);
        sent_count.write((bit<32>)std.egress_port, meta.sent + 1);
    }

    apply {
        if (meta.routed == 1) {
            ecn.apply(hdr, meta, std);
            measure.apply(hdr, meta, std);
            if (meta.int_state != INT_NONE && meta.verdict != VERDICT_DROP) {
                int_hop.apply(hdr, meta, std);
            }
            if (meta.int_state != INT_NONE || std.deq_qdepth != 0) {
                int_events.apply(hdr, meta, std);
            }
        } else if (std.instance_type == INSTANCE_INGRESS_CLONE
                   || std.instance_type == INSTANCE_EGRESS_CLONE) {
            int_report.apply(hdr, meta, std);
        } else if (hdr.probe.isValid() && std.egress_port == std.ingress_port) {
            prune();
        }
        if (meta.verdict != VERDICT_DROP) {
            rewrite.apply(hdr, meta, std);
            count_sent();
            if (meta.verdict == VERDICT_SEND && hdr.hello.isValid()) {
                speak.apply(hdr, meta, std);
            }
            port_tx.count((bit<32>)std.egress_port);
            queue_tx.count((bit<32>)(std.egress_port ++ meta.queue));
        }
    }
}

#endif
