// Locality: do the packet's bytes stay in the LA domain they came from?
//
// Reads: the port's role and LA domain, VRF, destination address.
// Writes: the locality counter, for forwarded packets only. A packet is judged once, where a host sends
// it into the fabric; at ports between switches it counts as transit. What the controller submits
// through the CPU port is nobody's traffic and is not counted.

#ifndef FABRIC_LOCALITY_P4
#define FABRIC_LOCALITY_P4

control Locality(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> dst_la = 0;
    locality_t class = LOCALITY_UNKNOWN;

    @brief("Forwarded packets; index: ingress_port << 2 | class (0 local, 1 crossing, 2 transit, 3 unknown).")
    counter(PORT_LOCALITY, CounterType.packets_and_bytes) locality;

    @brief("The destination is in LA domain `la`.")
    action set_dst_la(bit<32> la) {
        dst_la = la;
    }

    @brief("LA domain of each destination prefix, by VRF.")
    @description("IPv4 prefixes are IPv4-mapped (::ffff:a.b.c.d, prefix length + 96).")
    table la_of {
        key = {
            meta.vrf:      exact @name("vrf");
            meta.dst_addr: lpm   @name("dst_addr");
        }
        actions = { set_dst_la; NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    apply {
        if (meta.role == ROLE_FABRIC) {
            class = LOCALITY_TRANSIT;
        } else if (la_of.apply().hit) {
            if (dst_la == meta.ingress_la) {
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
