// Load: how congested is a port of this switch?
//
// Measure (egress) reads: queue depth and length of each packet sent. Writes: the queue's depth, and how
// much of its capacity the port has used of late, which fades within `window`.
// Reckon (ingress) decides: the port's congestion in bands: packets waiting >> queue_shift, plus used
// share of the capacity (0 to 65536) >> use_shift.
//
// A depth that egress sets is as old as the packet last sent; what ingress has sent since is counted on
// top, so that several packets at once do not all take the same empty queue.

#ifndef FABRIC_LOAD_P4
#define FABRIC_LOAD_P4

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

control Reckon(in port_t port, in bit<3> queue, in bit<5> queue_shift, in bit<5> use_shift,
               out quality_t band, inout standard_metadata_t std) {
    @hidden
    action reckon() {
        bit<32> waiting;
        queue_load.read(waiting, (bit<32>)(port ++ queue));
        bit<64> cell;
        port_use.read(cell, (bit<32>)port);
        bit<32> passed = std.ingress_global_timestamp[31:0] - cell[USE_TIME];
        bit<64> share = (bit<64>)cell[USE_SHARE];
        share = (passed >> cell[USE_WINDOW]) != 0
            ? 0 : share - ((share * (bit<64>)passed) >> cell[USE_WINDOW]);
        bit<32> sum = (waiting >> queue_shift) + (share[31:0] >> use_shift);
        band = sum > (bit<32>)QUALITY_LOCAL_MOST ? QUALITY_LOCAL_MOST : sum[7:0];
    }

    apply {
        reckon();
    }
}

#endif
