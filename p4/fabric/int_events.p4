// INT, events: is there something to tell a collector of?
//
// Reads: what INT, ECN and the queue made of the packet.
// Decides: a path report where a measured packet leaves to a host; a queue report of any packet that
// found the queue above `int_queue_report`'s threshold, or was marked or dropped by ECN, where the entry
// says so. As far as int_report_meter lets through; a packet makes one report at most.
// Writes: what the report needs, and asks for a clone (int_report.p4).

#ifndef FABRIC_INT_EVENTS_P4
#define FABRIC_INT_EVENTS_P4

control IntEvents(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> session = 0;
    bit<2> colour = METER_GREEN;

    @brief("Report packets that leave more than `threshold` packets behind them in the queue, and, if `ecn` is 1, those that ECN marks or drops; by clone session `by_session`.")
    action report_queue(bit<19> threshold, bit<1> ecn, bit<16> by_session) {
        session = by_session;
        if (std.deq_qdepth > threshold) {
            meta.report.congested = 1;
        }
        meta.report.congested = meta.report.congested | (meta.ecn_hit & ecn);
    }

    @brief("Queues that are watched; asked only about packets that leave others behind.")
    table int_queue_report {
        key = {
            std.egress_port: exact @name("egress_port");
            meta.queue:      exact @name("queue");
        }
        actions = { report_queue; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    @hidden
    action describe() {
        meta.report.ingress_port = std.ingress_port;
        meta.report.egress_port = (bit<16>)std.egress_port;
        meta.report.queue = meta.queue;
        meta.report.depth = std.deq_qdepth;
        meta.report.ingress_time = std.ingress_global_timestamp;
        meta.report.egress_time = std.egress_global_timestamp;
        meta.report.frame_len = (bit<16>)std.packet_length;
    }

    apply {
        if (std.deq_qdepth != 0) {
            int_queue_report.apply();
        }
        if (meta.int_state != INT_NONE) {
            meta.report.tracked = 1;
        }
        if (meta.report.session != 0) {
            // The sink: what the packet asked for, of what is known here.
            if (hdr.kept_md.isValid()) {
                meta.report.md_bits = hdr.kept_md.instructions & REPORT_BITS_PATH;
            } else {
                meta.report.md_bits = meta.int_instructions & REPORT_BITS_PATH;
            }
            int_report_meter.execute_meter(REPORT_METER_PATH, colour);
        } else if (meta.report.congested == 1) {
            meta.report.md_bits = REPORT_BITS_QUEUE;
            if (meta.report.stripped == 0) {
                meta.report.intermediate = meta.report.tracked;
            }
            meta.report.session = session;
            int_report_meter.execute_meter(REPORT_METER_QUEUE, colour);
        }
        if (meta.report.session != 0 && colour != METER_RED) {
            if (meta.drop_reason == DROP_ECN) {
                meta.report.dropped = 1;
                meta.report.drop_reason = DROP_ECN;
                meta.report.md_bits = meta.report.md_bits | 1;
            }
            describe();
            if (meta.int_stripped == 0) {
                meta.report.frame_len = meta.report.frame_len + meta.int_grow;
            }
            clone_preserving_field_list(CloneType.E2E, (bit<32>)meta.report.session,
                                        FIELD_LIST_REPORT);
        }
    }
}

#endif
