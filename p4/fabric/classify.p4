// Classify: which traffic class, and which queue, does the packet ride?
//
// Reads: DSCP; BTH opcode.
// Writes: traffic class and queue; both are 0 when no entry says otherwise. Congestion notifications
// (CNP) always ride the control queue: a notification stuck behind what it is about is useless.

#ifndef FABRIC_CLASSIFY_P4
#define FABRIC_CLASSIFY_P4

control Classify(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @brief("Traffic class `tc`.")
    action set_tc(bit<4> tc) {
        meta.tc = tc;
    }

    @brief("DSCP to traffic class; class 0 without an entry.")
    table dscp_to_tc {
        key = { meta.dscp: exact @name("dscp"); }
        actions = { set_tc; NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    @brief("Queue `queue`; higher is served first.")
    action set_queue(bit<3> queue) {
        meta.queue = queue;
    }

    @brief("Traffic class to queue; queue 0 without an entry.")
    table tc_to_queue {
        key = { meta.tc: exact @name("tc"); }
        actions = { set_queue; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        dscp_to_tc.apply();
        tc_to_queue.apply();
        if (hdr.bth.isValid() && hdr.bth.opcode == BTH_OPCODE_CNP) {
            meta.queue = QUEUE_CONTROL;
        }
    }
}

#endif
