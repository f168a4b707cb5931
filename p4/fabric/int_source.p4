// INT, source: the packet starts to carry INT.
//
// Reads: what int_watch.p4 decided; the port's MTU.
// Decides: a packet that has no room for the fixed headers is not measured.
// Writes: shim and INT-MD header behind the UDP or TCP header, and what tells the next hops: the DSCP, or
// the UDP destination port, for TCP that of a new UDP header in between. The shim keeps what was there.

#ifndef FABRIC_INT_SOURCE_P4
#define FABRIC_INT_SOURCE_P4

control IntSource(inout headers_t hdr, inout metadata_t meta, in bit<16> mtu) {
    bit<2> npt = INT_NPT_IN_PLACE;
    bit<16> field = 0;
    bit<16> grow = INT_FIXED_BYTES;

    @hidden
    action fixed_headers() {
        hdr.int_shim.setValid();
        hdr.int_shim.type = INT_TYPE_MD;
        hdr.int_shim.npt = npt;
        hdr.int_shim.reserved = 0;
        hdr.int_shim.length = INT_MD_WORDS;
        hdr.int_shim.field = field;
        hdr.int_md.setValid();
        hdr.int_md.version = INT_VERSION;
        hdr.int_md.discard = 0;
        hdr.int_md.hops_exceeded = 0;
        hdr.int_md.mtu_exceeded = 0;
        hdr.int_md.reserved = 0;
        hdr.int_md.hop_ml = meta.int_hop_ml;
        hdr.int_md.remaining_hops = meta.int_max_hops;
        hdr.int_md.instructions = meta.int_instructions;
        hdr.int_md.domain_id = meta.int_domain_id;
        hdr.int_md.ds_instructions = 0;
        hdr.int_md.ds_flags = 0;
        meta.int_state = INT_CARRIED;
        meta.int_grow = grow;
        // The same as 16-bit words, and the length once, as TCP's pseudo header has it.
        meta.int_sum = (bit<32>)(INT_TYPE_MD ++ npt ++ 2w0 ++ INT_MD_WORDS)
            + (bit<32>)field
            + (bit<32>)(INT_VERSION ++ 12w0)
            + (bit<32>)(3w0 ++ meta.int_hop_ml ++ meta.int_max_hops)
            + (bit<32>)meta.int_instructions
            + (bit<32>)meta.int_domain_id
            + (bit<32>)grow;
    }

    // A new UDP header: its source port spreads flows at routers that know nothing of INT.
    @hidden
    action udp_before_tcp() {
        bit<16> entropy = meta.src_addr[15:0] ^ meta.dst_addr[15:0] ^ meta.src_port ^ meta.dst_port;
        hdr.inner_tcp = hdr.tcp;
        hdr.tcp.setInvalid();
        hdr.udp.setValid();
        hdr.udp.src_port = entropy | 0xc000;   // dynamic ports, RFC 6335 section 6
        hdr.udp.dst_port = meta.int_indicator;
        hdr.udp.length = meta.l4_len;   // int_hop.p4 adds what comes in
        hdr.udp.checksum = 0;
    }

    apply {
        if (meta.int_by_port == 0) {
            field = 8w0 ++ meta.dscp ++ 2w0;
        } else if (hdr.udp.isValid()) {
            npt = INT_NPT_PORT;
            field = hdr.udp.dst_port;
        } else {
            npt = INT_NPT_PROTOCOL;
            field = (bit<16>)PROTO_TCP;
            grow = INT_FIXED_BYTES + INT_UDP_BYTES;
        }
        if ((bit<17>)meta.ip_len + (bit<17>)grow <= (bit<17>)mtu) {
            fixed_headers();
            if (npt == INT_NPT_PORT) {
                meta.int_sum = meta.int_sum + (bit<32>)meta.int_indicator
                    + (bit<32>)(hdr.udp.dst_port ^ 0xffff);
                hdr.udp.dst_port = meta.int_indicator;
            } else if (npt == INT_NPT_PROTOCOL) {
                udp_before_tcp();
                if (hdr.ipv4.isValid()) {
                    hdr.ipv4.protocol = PROTO_UDP;
                } else {
                    hdr.ipv6.next_header = PROTO_UDP;
                }
            } else if (hdr.ipv4.isValid()) {
                hdr.ipv4.dscp = (bit<6>)meta.int_indicator;
            } else {
                hdr.ipv6.dscp = (bit<6>)meta.int_indicator;
            }
            if (npt != INT_NPT_PROTOCOL && hdr.udp.isValid()) {
                // The length is in UDP's own header as well.
                meta.int_sum = meta.int_sum + (bit<32>)grow;
            }
        }
    }
}

#endif
