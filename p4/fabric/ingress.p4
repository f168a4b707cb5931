// Ingress: the stages in order, then the verdict.
//
// Reads: the verdict of each stage.
// Decides: which stage is next. One runs only while the verdict of those before it is `forward`; none undoes a
// verdict, save that the filter may turn a punt by route or TTL into a drop.
// Writes: egress_spec and priority, once, at the end; counters of what comes in and of drops.

#ifndef FABRIC_INGRESS_P4
#define FABRIC_INGRESS_P4

control FabricIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Check() check;
    IntRecognise() int_recognise;
    Hear() hear;
    Probe() probe;
    Punt() punt;
    Classify() classify;
    Station() station;
    Route() route;
    Domain() domain;
    Place() place;
    Spread() spread;
    NextHop() nexthop;
    Filter() filter;
    Locality() locality;
    IntWatch() int_watch;
    IntDrops() int_drops;

    @brief("Packets received; index: ingress port.")
    counter(PORTS, CounterType.packets_and_bytes) port_rx;

    @hidden
    action packet_out_send() {
        meta.verdict = VERDICT_SEND;
        std.egress_spec = hdr.packet_out.egress_port;
        meta.queue = QUEUE_CONTROL;
        hdr.packet_out.setInvalid();
    }

    @hidden
    action to_cpu() {
        std.egress_spec = CPU_PORT;
        meta.routed = 0;
        meta.queue = QUEUE_CONTROL;
    }

    @hidden
    action count_received() {
        bit<32> n;
        received_count.read(n, (bit<32>)std.ingress_port);
        received_count.write((bit<32>)std.ingress_port, n + 1);
    }

    @hidden
    action count_waiting() {
        bit<32> n;
        bit<32> index = (bit<32>)(meta.member_port ++ meta.queue);
        queue_load.read(n, index);
        queue_load.write(index, n + 1);
    }

    apply {
        port_rx.count((bit<32>)std.ingress_port);
        if (hdr.packet_out.isValid() && hdr.packet_out.submit_to_ingress == 0) {
            packet_out_send();
        } else {
            hdr.packet_out.setInvalid();
            check.apply(hdr, meta, std);
            if (meta.role == ROLE_FABRIC) {
                count_received();
            }
            if (meta.verdict == VERDICT_FORWARD) {
                if (hdr.hello.isValid()) {
                    hear.apply(hdr, meta, std);
                } else if (hdr.probe.isValid()) {
                    probe.apply(hdr, meta, std);
                } else if (hdr.int_shim.isValid()) {
                    int_recognise.apply(hdr, meta, std);
                }
            }
            if (meta.verdict == VERDICT_FORWARD) {
                punt.apply(hdr, meta, std);
            }
            if (meta.verdict == VERDICT_FORWARD) {
                classify.apply(hdr, meta, std);
                station.apply(hdr, meta, std);
                if (meta.verdict == VERDICT_FORWARD) {
                    route.apply(hdr, meta, std);
                    if (meta.verdict == VERDICT_FORWARD) {
                        if (meta.role != ROLE_FABRIC || meta.use_group == 1) {
                            domain.apply(hdr, meta, std);
                        }
                        place.apply(hdr, meta, std);
                        if (meta.use_group == 1) {
                            spread.apply(hdr, meta, std);
                        }
                    }
                    if (meta.verdict == VERDICT_FORWARD) {
                        nexthop.apply(hdr, meta, std);
                    }
                    if (meta.verdict != VERDICT_DROP) {
                        filter.apply(hdr, meta, std);
                    }
                    if (meta.verdict == VERDICT_FORWARD) {
                        locality.apply(hdr, meta, std);
                        if (meta.member_port != 0) {
                            count_waiting();
                        }
                        if (meta.role == ROLE_HOST) {
                            int_watch.apply(hdr, meta, std);
                        }
                    }
                }
            }
        }

        if (meta.verdict == VERDICT_PUNT) {
            to_cpu();
        } else if (meta.verdict == VERDICT_DROP) {
            drops.count((bit<32>)(std.ingress_port ++ meta.drop_reason));
            int_drops.apply(hdr, meta, std);
            mark_to_drop(std);
        }
        std.priority = meta.queue;
    }
}

#endif
