// Measure: how busy is this port?
//
// Reads: queue depth and length of each packet sent.
// Decides: nothing.
// Writes: the queue's depth; how much of its capacity the port has used of late, which fades within `window`.

#ifndef FABRIC_MEASURE_P4
#define FABRIC_MEASURE_P4

control Measure(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> use_scale = 0;
    bit<6>  use_window = 0;

    @brief("Measure the port: a byte is `scale` / 65536 of its capacity in 2^`window` us, of which all is 65536.")
    action measure(bit<32> scale, bit<6> window) {
        use_scale = scale;
        use_window = window;
    }

    @brief("Ports whose load is measured for adaptive ECMP.")
    table port_load {
        key = { std.egress_port: exact @name("egress_port"); }
        actions = { measure; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    @hidden
    action record() {
        queue_load.write((bit<32>)(std.egress_port ++ meta.queue), (bit<32>)std.deq_qdepth);
        bit<64> cell;
        port_use.read(cell, (bit<32>)std.egress_port);
        bit<32> now = std.egress_global_timestamp[31:0];
        bit<32> passed = now - cell[USE_TIME];
        bit<64> share = (bit<64>)cell[USE_SHARE];
        share = (passed >> use_window) != 0 ? 0 : share - ((share * (bit<64>)passed) >> use_window);
        share = share + (((bit<64>)std.packet_length * (bit<64>)use_scale) >> 16);
        share = share > 0x3ffffff ? 0x3ffffff : share;
        port_use.write((bit<32>)std.egress_port, now ++ use_window ++ share[25:0]);
    }

    apply {
        if (port_load.apply().hit) {
            record();
        }
    }
}

#endif
