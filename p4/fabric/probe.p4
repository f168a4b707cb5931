// Probe: how congested is the way to an LA domain behind each port?
//
// Every leaf sends probes of its LA domain up; a switch that gets one by a port adds the congestion of that
// port (the direction in which data goes to the LA domain) and passes it on: from below to all other
// neighbours, from above only down. So a probe has been where data to the LA domain may go.
// Reads: the probe, the load of the port it came by.
// Decides: whether the probe came by the best of the paths known here; only then it goes on.
// Writes: the path's congestion, by LA domain and port.

#ifndef FABRIC_PROBE_P4
#define FABRIC_PROBE_P4

// The best path of an LA domain. A cell: [63:48] low bits of the LA domain, [47:39] port, [38:32] bands,
// [31:0] time.
register<bit<64>>(LA_DOMAINS) best_path;
#define BEST_LA   63:48
#define BEST_PORT 47:39
#define BEST_BAND 38:32
#define BEST_TIME 31:0

control Probe(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Reckon() reckon;
    bit<16> group = 0;
    bit<32> path_age = 0;
    bit<3>  data_queue = 0;
    bit<5>  by_queue = 0;
    bit<5>  by_use = 0;
    quality_t local_band = 0;
    bit<1> is_best = 0;

    @brief("Learn from probes, and pass them on to multicast group `mcast_group` (0: nobody).")
    @description("age: us after which a path's last probe counts for nothing. queue, queue_shift, use_shift: bands of the port that are added, as in set_ars_group.")
    action relay(bit<16> mcast_group, bit<32> age, bit<3> queue, bit<5> queue_shift,
                 bit<5> use_shift) {
        group = mcast_group;
        path_age = age;
        data_queue = queue;
        by_queue = queue_shift;
        by_use = use_shift;
    }

    @brief("The CPU port: its probes go out of the ports of multicast group `mcast_group`.")
    action originate(bit<16> mcast_group) {
        std.mcast_grp = mcast_group;
    }

    @brief("Ports that take part in probing; and the CPU port, which makes probes.")
    table probe_port {
        key = { std.ingress_port: exact @name("ingress_port"); }
        actions = { relay; originate; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    @hidden
    action handled() {
        meta.verdict = VERDICT_SEND;
        meta.queue = QUEUE_CONTROL;
    }

    @hidden
    action learn() {
        path_state.write(PATH_INDEX(hdr.probe.la, std.ingress_port),
                         hdr.probe.la[23:0] ++ hdr.probe.band ++ std.ingress_global_timestamp[31:0]);
        port_set_t lost;
        lost_paths.read(lost, LOST_INDEX(hdr.probe.la, std.ingress_port));
        lost_paths.write(LOST_INDEX(hdr.probe.la, std.ingress_port),
                         lost & ~SET_OF(std.ingress_port));
    }

    @hidden
    action compare() {
        bit<32> now = std.ingress_global_timestamp[31:0];
        bit<64> cell;
        best_path.read(cell, (bit<32>)hdr.probe.la[8:0]);
        quality_t band = hdr.probe.band + local_band;
        band = band > QUALITY_PATH_MOST ? QUALITY_PATH_MOST : band;
        hdr.probe.band = band;
        hdr.probe.hops = hdr.probe.hops + 1;
        is_best = cell[BEST_LA] != hdr.probe.la[15:0] || cell[BEST_PORT] == std.ingress_port
            || band[6:0] < cell[BEST_BAND] || now - cell[BEST_TIME] > path_age ? 1w1 : 0;
        cell = is_best == 1 ? hdr.probe.la[15:0] ++ std.ingress_port ++ band[6:0] ++ now : cell;
        best_path.write((bit<32>)hdr.probe.la[8:0], cell);
    }

    apply {
        switch (probe_port.apply().action_run) {
            relay: {
                handled();
                learn();
                reckon.apply(std.ingress_port, data_queue, by_queue, by_use, local_band, std);
                compare();
                if (is_best == 1 && hdr.probe.hops <= PROBE_HOPS && group != 0) {
                    std.mcast_grp = group;
                } else {
                    mark_to_drop(std);
                }
            }
            originate: {
                handled();
            }
        }
    }
}

#endif
