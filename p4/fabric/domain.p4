// Domain: which LA domain is the packet for?
//
// Reads: VRF, destination address.
// Writes: the destination's LA domain, if it is known. Locality compares it with where the packet came
// in; adaptive ECMP knows paths by it.

#ifndef FABRIC_DOMAIN_P4
#define FABRIC_DOMAIN_P4

control Domain(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @brief("The destination is in LA domain `la`.")
    action set_dst_la(bit<32> la) {
        meta.dst_la = la;
        meta.dst_la_known = 1;
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
        la_of.apply();
    }
}

#endif
