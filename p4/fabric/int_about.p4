// INT, about: what is known of this hop that takes more than v1model's own metadata.
//
// Reads: the instructions; the ports; the load of the egress port (measure.p4).
// Decides: nothing; what is not asked for is not looked up.
// Writes: logical interfaces, by `int_ingress_interface` and `int_egress_interface` (ones without an entry); the
// egress port's use with this packet in it, in 65536ths of its capacity (ones where `port_load` has no entry).
//
// The buffer of bit 8 needs nothing of this. v1model has no buffer that queues share: each queue has its own,
// so that is the buffer a packet is in. BUFFER_OF numbers it as the counters of queues do, in the 8 bits there
// are, and its occupancy is the queue's depth.

#ifndef FABRIC_INT_ABOUT_P4
#define FABRIC_INT_ABOUT_P4

#define BUFFER_OF(port, queue) ((port)[4:0] ++ (queue))

control IntAbout(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> asked = 0;

    @brief("Packets that come in here come by logical interface `id`.")
    action came_by(bit<32> id) {
        meta.report.ingress_interface = id;
    }

    @brief("Logical interface of each ingress port, for INT.")
    table int_ingress_interface {
        key = { std.ingress_port: exact @name("ingress_port"); }
        actions = { came_by; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    @brief("Packets that go out here go by logical interface `id`.")
    action goes_by(bit<32> id) {
        meta.report.egress_interface = id;
    }

    @brief("Logical interface of each egress port, for INT.")
    table int_egress_interface {
        key = { std.egress_port: exact @name("egress_port"); }
        actions = { goes_by; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    @hidden
    action nothing_known() {
        meta.report.ingress_interface = UNKNOWN_32;
        meta.report.egress_interface = UNKNOWN_32;
        meta.report.utilisation = UNKNOWN_32;
    }

    // A port that is measured has this very packet in its use.
    @hidden
    action read_use() {
        bit<64> cell;
        port_use.read(cell, (bit<32>)std.egress_port);
        meta.report.utilisation = cell[USE_TIME] == std.egress_global_timestamp[31:0]
            && cell[USE_WINDOW] != 0 ? 6w0 ++ cell[USE_SHARE] : UNKNOWN_32;
    }

    apply {
        asked = meta.int_instructions;
        if (hdr.int_md.isValid()) {
            asked = hdr.int_md.instructions;
        }
        nothing_known();
        if (asked[9:9] == 1) {
            int_ingress_interface.apply();
            int_egress_interface.apply();
        }
        if (asked[8:8] == 1) {
            read_use();
        }
    }
}

#endif
