// Alive: may a port be used towards an LA domain?
//
// Reads: when the neighbour is next overdue; when the LA domain was last probed from behind the port.
// Decides: dead when the neighbour is overdue or does not hear us; lost when probes of the LA domain
// came by this port once and stopped for `age`; gray when what we send is lost on the way. A port whose
// neighbour was never heard is alive: liveness begins with the first hello.

#ifndef FABRIC_ALIVE_P4
#define FABRIC_ALIVE_P4

control Alive(in port_t port, inout metadata_t meta, in bit<32> age, inout standard_metadata_t std,
              out bit<1> dead, out bit<1> lost, out bit<1> gray, out quality_t path_band) {
    bit<64> cell = 0;
    micros_t judging_until = 0;

    @hidden
    action ask_neighbour() {
        neighbour_state.read(cell, (bit<32>)port);
        generator_until.read(judging_until, 0);
        gray = cell[IS_GRAY];
        dead = cell[ALIVE_UNTIL] != 0
            && ((std.ingress_global_timestamp > cell[ALIVE_UNTIL]
                 && std.ingress_global_timestamp <= judging_until)
                || cell[IS_DEAF] == 1) ? 1w1 : 0;
    }

    @hidden
    action ask_path() {
        path_state.read(cell, PATH_INDEX(meta.dst_la, port));
        bit<1> known = cell[PATH_LA] == meta.dst_la[23:0] && cell[PATH_TIME] != 0 ? 1w1 : 0;
        lost = known == 1 && std.ingress_global_timestamp[31:0] - cell[PATH_TIME] > age ? 1w1 : 0;
        path_band = known == 1 && lost == 0 ? cell[PATH_BAND] : QUALITY_PATH_MOST;
    }

    apply {
        lost = 0;
        path_band = 0;
        ask_neighbour();
        if (age != 0 && meta.dst_la_known == 1) {
            ask_path();
        }
    }
}

#endif
