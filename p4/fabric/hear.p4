// Hear: is the neighbour there, and does it get what we send?
//
// Reads: a neighbour's hello; packets received since an earlier one.
// Decides: whether the neighbour's packets get lost (gray): when more than one in 2^loss_shift is missing of at
// least `window` packets that the neighbour says it sent. What was sent to us while the link was dead is not
// counted. A hello from the CPU port is a stroke of the clock: it goes out of all ports of `mcast_group`.
// Writes: until when the neighbour counts as alive; whether it hears us (its port is dead while it does not);
// whether its packets get lost, which our next hello tells it; whether ours get lost, which its hello told us.

#ifndef FABRIC_HEAR_P4
#define FABRIC_HEAR_P4

// Both counts at the beginning of the window: [63:32] sent, [31:0] received.
register<bit<64>>(PORTS)  loss_base;
register<micros_t>(PORTS) gray_until;

control Hear(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> detection = 0;
    bit<5>  gray_shift = 0;
    bit<32> gray_window = 0;
    bit<32> gray_hold = 0;

    @brief("A neighbour: dead `detect` us after its last hello; gray when more than one in 2^`loss_shift` of `window` packets is lost, for at least `hold` us.")
    action watch(bit<32> detect, bit<5> loss_shift, bit<32> window, bit<32> hold) {
        detection = detect;
        gray_shift = loss_shift;
        gray_window = window;
        gray_hold = hold;
    }

    @brief("The CPU port: its hellos go out of the ports of multicast group `mcast_group`, the next within `allow` us.")
    action say_hello(bit<16> mcast_group, bit<32> allow) {
        generator_until.write(0, std.ingress_global_timestamp + (bit<48>)allow);
        std.mcast_grp = mcast_group;
    }

    @brief("Ports whose neighbours are watched by hellos; and the CPU port, which makes them.")
    table neighbour {
        key = { std.ingress_port: exact @name("ingress_port"); }
        actions = { watch; say_hello; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    @hidden
    action consume() {
        meta.verdict = VERDICT_SEND;
        meta.queue = QUEUE_CONTROL;
        mark_to_drop(std);
    }

    @hidden
    action hear() {
        bit<32> port = (bit<32>)std.ingress_port;
        micros_t now = std.ingress_global_timestamp;
        bit<64> cell;
        neighbour_state.read(cell, port);

        // Loss of the neighbour's packets. This hello is itself received and not yet counted as sent.
        bit<64> base;
        bit<32> received;
        bit<1> is_lossy;
        loss_base.read(base, port);
        received_count.read(received, port);
        received = received - 1;
        lossy.read(is_lossy, port);
        bit<32> sent = hdr.hello.sent - base[63:32];
        bit<32> missing = sent - (received - base[31:0]);
        missing = missing[31:31] == 1 ? 0 : missing;
        // After a silence, or when the neighbour counts from 0 again, a window begins.
        bool begin = now > cell[ALIVE_UNTIL] || sent[31:31] == 1;
        bool complete = sent >= gray_window;
        is_lossy = complete && !begin
            ? (((bit<64>)missing << gray_shift) > (bit<64>)sent ? 1w1 : 0) : is_lossy;
        lossy.write(port, is_lossy);
        base = begin || complete ? hdr.hello.sent ++ received : base;
        loss_base.write(port, base);

        micros_t until;
        gray_until.read(until, port);
        until = hdr.hello.gray == 1 ? now + (bit<48>)gray_hold : until;
        gray_until.write(port, until);
        bit<1> is_gray = now < until ? 1w1 : 0;

        neighbour_state.write(port, 14w0 ++ is_gray ++ hdr.hello.deaf ++ (now + (bit<48>)detection));
        port_set_t dead;
        dead_ports.read(dead, SET_INDEX(std.ingress_port));
        dead = hdr.hello.deaf == 1 ? dead | SET_OF(std.ingress_port) : dead & ~SET_OF(std.ingress_port);
        dead_ports.write(SET_INDEX(std.ingress_port), dead);
    }

    apply {
        switch (neighbour.apply().action_run) {
            watch: {
                hear();
                consume();
            }
            say_hello: {
                meta.verdict = VERDICT_SEND;
                meta.queue = QUEUE_CONTROL;
            }
        }
    }
}

#endif
