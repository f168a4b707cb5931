// INT, drops: tell a collector of a packet that is about to be dropped.
//
// Reads: the drop reason; what is known of the packet's way.
// Decides: by `int_drop_report`, for IP packets, as far as int_report_meter lets through.
// Writes: what the report needs, and asks for a clone of the packet as it came in (int_report.p4).

#ifndef FABRIC_INT_DROPS_P4
#define FABRIC_INT_DROPS_P4

control IntDrops(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<2> colour = METER_GREEN;

    @brief("Report by clone session `session`.")
    action report_drop(bit<16> session) {
        meta.report.session = session;
        meta.report.md_bits = REPORT_BITS_DROP;
        meta.report.dropped = 1;
        meta.report.ingress_port = std.ingress_port;
        meta.report.egress_port = INTERFACE_UNKNOWN;
        meta.report.queue = meta.queue;
        meta.report.ingress_time = std.ingress_global_timestamp;
        meta.report.drop_reason = meta.drop_reason;
        meta.report.frame_len = (bit<16>)std.packet_length;
        int_report_meter.execute_meter(REPORT_METER_DROP, colour);
    }

    @brief("Drop reasons that are reported, of those that ingress finds.")
    table int_drop_report {
        key = { meta.drop_reason: exact @name("reason"); }
        actions = { report_drop; NoAction; }
        const default_action = NoAction();
        size = 32;
    }

    apply {
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            if (int_drop_report.apply().hit) {
                if (meta.routed == 1) {
                    meta.report.egress_port = (bit<16>)std.egress_spec;
                }
                if (meta.int_state != INT_NONE) {
                    meta.report.tracked = 1;
                }
                if (colour != METER_RED) {
                    clone_preserving_field_list(CloneType.I2E, (bit<32>)meta.report.session,
                                                FIELD_LIST_REPORT);
                }
            }
        }
    }
}

#endif
