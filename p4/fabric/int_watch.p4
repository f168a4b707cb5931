// INT, watch: is this packet measured from here on?
//
// Reads: the flow, at host ports, of packets that are forwarded.
// Decides: `int_watchlist` names the flows; of each, one packet in `one_in` is taken, by lot, so that
// sampling does not fall into step with traffic that repeats itself. What cannot be given back bit for
// bit at the sink is left alone: a UDP or TCP length that contradicts the header, and a TCP checksum of
// 0xffff, which no sender computes and which one's complement cannot tell from 0.
// Writes: int_state, and what the source is to write (int_hop.p4, int_source.p4).

#ifndef FABRIC_INT_WATCH_P4
#define FABRIC_INT_WATCH_P4

control IntWatch(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<32> draw = 1;

    @hidden
    action take(bit<32> one_in, bit<16> instructions, bit<5> hop_ml, bit<8> max_hops,
                bit<16> domain_id) {
        random(draw, 32w0, one_in - 1);
        meta.int_instructions = instructions;
        meta.int_hop_ml = hop_ml;
        meta.int_max_hops = max_hops;
        meta.int_domain_id = domain_id;
    }

    @brief("Measure one packet in `one_in`; `dscp` tells the next hops.")
    @description("instructions: INT-MD bitmap; hop_ml: its length in words; max_hops: hops that may add theirs.")
    action watch_by_dscp(bit<32> one_in, bit<16> instructions, bit<5> hop_ml, bit<8> max_hops,
                         bit<16> domain_id, bit<6> dscp) {
        take(one_in, instructions, hop_ml, max_hops, domain_id);
        meta.int_indicator = (bit<16>)dscp;
        meta.int_by_port = 0;
    }

    @brief("Measure one packet in `one_in`; UDP destination port `udp_port` tells the next hops.")
    action watch_by_port(bit<32> one_in, bit<16> instructions, bit<5> hop_ml, bit<8> max_hops,
                         bit<16> domain_id, bit<16> udp_port) {
        take(one_in, instructions, hop_ml, max_hops, domain_id);
        meta.int_indicator = udp_port;
        meta.int_by_port = 1;
    }

    @brief("Do not measure.")
    action ignore() {}

    @brief("Flows that are measured, UDP (RoCEv2 too) and TCP; the entry of highest priority decides.")
    @description("IPv4 addresses are IPv4-mapped (::ffff:a.b.c.d). dest_qp is 0 unless RoCEv2.")
    table int_watchlist {
        key = {
            meta.src_addr:    ternary @name("src_addr");
            meta.dst_addr:    ternary @name("dst_addr");
            meta.ip_protocol: ternary @name("ip_protocol");
            meta.src_port:    ternary @name("src_port");
            meta.dst_port:    ternary @name("dst_port");
            meta.dest_qp:     ternary @name("dest_qp");
        }
        actions = { watch_by_dscp; watch_by_port; ignore; }
        const default_action = ignore();
        size = 1024;
    }

    apply {
        if (!hdr.int_shim.isValid()) {
            if ((hdr.udp.isValid() && hdr.udp.length >= UDP_BYTES
                 && hdr.udp.length <= UDP_LENGTH_MAX)
                    || (hdr.tcp.isValid() && hdr.tcp.checksum != 0xffff
                        && meta.l4_len >= TCP_BYTES)) {
                int_watchlist.apply();
                if (draw == 0) {
                    meta.int_state = INT_SOURCE;
                }
            }
        }
    }
}

#endif
