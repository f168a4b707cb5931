// Speak: what should the neighbour at this port know?
//
// Reads: when the neighbour is overdue; whether its packets get lost; packets sent to it.
// Decides: whether we are deaf: the neighbour was heard once and is overdue.
// Writes: all of it into the hello that goes out; a neighbour that is overdue becomes a dead port.

#ifndef FABRIC_SPEAK_P4
#define FABRIC_SPEAK_P4

control Speak(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @hidden
    action speak() {
        bit<32> port = (bit<32>)std.egress_port;
        bit<64> cell;
        neighbour_state.read(cell, port);
        bit<1> overdue = cell[ALIVE_UNTIL] != 0 && std.egress_global_timestamp > cell[ALIVE_UNTIL]
            ? 1w1 : 0;
        hdr.hello.deaf = overdue;
        lossy.read(hdr.hello.gray, port);
        hdr.hello.sent = meta.sent;
        port_set_t dead;
        dead_ports.read(dead, SET_INDEX(std.egress_port));
        dead = overdue == 1 ? dead | SET_OF(std.egress_port) : dead;
        dead_ports.write(SET_INDEX(std.egress_port), dead);
    }

    apply {
        speak();
    }
}

#endif
