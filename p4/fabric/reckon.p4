// Reckon: how congested is a port of this switch?
//
// Reads: what measure.p4 has written of the port.
// Decides: the port's congestion in bands: packets waiting >> queue_shift, plus used share of the capacity
// (0 to 65536) >> use_shift.
// Writes: nothing.
//
// A depth that egress sets is as old as the packet last sent; what ingress has sent since is counted on
// top, so that several packets at once do not all take the same empty queue.

#ifndef FABRIC_RECKON_P4
#define FABRIC_RECKON_P4

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
