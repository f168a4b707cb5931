// Locality: do the packet's bytes stay in the LA domain they came from?
//
// Reads: the port's role and LA domain, the destination's.
// Writes: the locality counter, for forwarded packets only. A packet is judged once, where a host sends
// it into the fabric; at ports between switches it counts as transit. What the controller submits
// through the CPU port is nobody's traffic and is not counted.

#ifndef FABRIC_LOCALITY_P4
#define FABRIC_LOCALITY_P4

control Locality(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    locality_t class = LOCALITY_UNKNOWN;

    @brief("Forwarded packets; index: ingress_port << 2 | class (0 local, 1 crossing, 2 transit, 3 unknown).")
    counter(PORT_LOCALITY, CounterType.packets_and_bytes) locality;

    apply {
        if (meta.role == ROLE_FABRIC) {
            class = LOCALITY_TRANSIT;
        } else if (meta.dst_la_known == 1) {
            if (meta.dst_la == meta.ingress_la) {
                class = LOCALITY_LOCAL;
            } else {
                class = LOCALITY_CROSSING;
            }
        }
        if (meta.role != ROLE_CPU) {
            locality.count((bit<32>)(std.ingress_port ++ class));
        }
    }
}

#endif
