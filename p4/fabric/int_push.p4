// INT, push: this hop's metadata.
//
// Reads: the INT-MD header; what v1model tells of the packet's way through the switch.
// Decides: nothing is pushed, and flag E set, when no hop is left; flag M when the packet would outgrow
// the port's MTU. A hop either adds all that is asked for or nothing: where the words asked for do not fit
// Hop ML, or the stack would outgrow what the parser takes, the packet goes on as it came.
// Writes: node, ports, latency, queue, times, and what int_about.p4 found out, in front of the stack, by
// instruction bit. Everything behind bit 8 is ones: reserved bits and domains have no meaning here, and the
// checksum itself is updated instead of its complement (bit 15).

#ifndef FABRIC_INT_PUSH_P4
#define FABRIC_INT_PUSH_P4

control IntPush(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std,
                in bit<32> node_id, in bit<16> mtu) {
    bit<16> bits = 0;
    bit<8> words = 0;    // that the bits ask for, without domain specific ones
    bit<5> known = 0;    // that stand before the ones
    bit<5> ones = 0;
    bit<16> bytes = 0;
    bit<32> sum = 0;

    @hidden
    action count_words() {
        bits = hdr.int_md.instructions;
        bytes = (bit<16>)hdr.int_md.hop_ml << 2;
        known = (bit<5>)bits[15:15] + (bit<5>)bits[14:14] + (bit<5>)bits[13:13]
            + (bit<5>)bits[12:12] + ((bit<5>)bits[11:11] << 1) + ((bit<5>)bits[10:10] << 1)
            + ((bit<5>)bits[9:9] << 1) + (bit<5>)bits[8:8] + (bit<5>)bits[7:7];
        words = (bit<8>)known + (bit<8>)bits[6:6] + (bit<8>)bits[5:5] + (bit<8>)bits[4:4] + (bit<8>)bits[3:3] + (bit<8>)bits[2:2] + (bit<8>)bits[1:1]
            + (bit<8>)bits[0:0];
        ones = hdr.int_md.hop_ml - known;
    }

    @hidden
    action count_hop() {
        hdr.int_shim.length = hdr.int_shim.length + (bit<8>)hdr.int_md.hop_ml;
        hdr.int_md.remaining_hops = hdr.int_md.remaining_hops - 1;
        meta.int_grow = meta.int_grow + bytes;
        // Shim, then one hop less, as 16-bit words; the length as TCP's pseudo header has it.
        sum = (bit<32>)hdr.int_md.hop_ml + 0xfffe + (bit<32>)bytes;
    }

    @hidden
    action push_node() {
        hdr.int_node.setValid();
        hdr.int_node.id = node_id;
        sum = sum + (bit<32>)node_id[31:16] + (bit<32>)node_id[15:0];
    }

    @hidden
    action push_ports() {
        hdr.int_ports.setValid();
        hdr.int_ports.ingress = (bit<16>)std.ingress_port;
        hdr.int_ports.egress = (bit<16>)std.egress_port;
        sum = sum + (bit<32>)std.ingress_port + (bit<32>)std.egress_port;
    }

    @hidden
    action push_latency() {
        bit<32> ns = (bit<32>)((std.egress_global_timestamp - std.ingress_global_timestamp)
                               * (bit<48>)NS_PER_US);
        hdr.int_latency.setValid();
        hdr.int_latency.ns = ns;
        sum = sum + (bit<32>)ns[31:16] + (bit<32>)ns[15:0];
    }

    @hidden
    action push_queue() {
        hdr.int_queue.setValid();
        hdr.int_queue.id = (bit<8>)meta.queue;
        hdr.int_queue.depth = (bit<24>)std.deq_qdepth;
        sum = sum + (bit<32>)(5w0 ++ meta.queue ++ 5w0 ++ std.deq_qdepth[18:16])
            + (bit<32>)std.deq_qdepth[15:0];
    }

    @hidden
    action push_ingress_time() {
        bit<64> ns = (bit<64>)std.ingress_global_timestamp * NS_PER_US;
        hdr.int_ingress_time.setValid();
        hdr.int_ingress_time.ns = ns;
        sum = sum + (bit<32>)ns[63:48] + (bit<32>)ns[47:32] + (bit<32>)ns[31:16] + (bit<32>)ns[15:0];
    }

    @hidden
    action push_egress_time() {
        bit<64> ns = (bit<64>)std.egress_global_timestamp * NS_PER_US;
        hdr.int_egress_time.setValid();
        hdr.int_egress_time.ns = ns;
        sum = sum + (bit<32>)ns[63:48] + (bit<32>)ns[47:32] + (bit<32>)ns[31:16] + (bit<32>)ns[15:0];
    }

    @hidden
    action push_interfaces() {
        bit<32> from = meta.report.ingress_interface;
        bit<32> to = meta.report.egress_interface;
        hdr.int_interfaces.setValid();
        hdr.int_interfaces.ingress = from;
        hdr.int_interfaces.egress = to;
        sum = sum + (bit<32>)from[31:16] + (bit<32>)from[15:0] + (bit<32>)to[31:16] + (bit<32>)to[15:0];
    }

    @hidden
    action push_utilisation() {
        bit<32> share = meta.report.utilisation;
        hdr.int_utilisation.setValid();
        hdr.int_utilisation.share = share;
        sum = sum + (bit<32>)share[31:16] + (bit<32>)share[15:0];
    }

    @hidden
    action push_buffer() {
        bit<8> id = BUFFER_OF(std.egress_port, meta.queue);
        hdr.int_buffer.setValid();
        hdr.int_buffer.id = id;
        hdr.int_buffer.occupancy = (bit<24>)std.deq_qdepth;
        sum = sum + (bit<32>)(id ++ 5w0 ++ std.deq_qdepth[18:16]) + (bit<32>)std.deq_qdepth[15:0];
    }

    apply {
        count_words();
        if (hdr.int_md.remaining_hops == 0) {
            if (hdr.int_md.hops_exceeded == 0) {
                hdr.int_md.hops_exceeded = 1;
                meta.int_sum = meta.int_sum + 0x0400;
            }
        } else if (words > (bit<8>)hdr.int_md.hop_ml
                   || hdr.int_shim.length > INT_WORDS_MAX - (bit<8>)hdr.int_md.hop_ml) {
            // Goes on as it came.
        } else if ((bit<17>)meta.ip_len + (bit<17>)meta.int_grow + (bit<17>)bytes > (bit<17>)mtu) {
            if (hdr.int_md.mtu_exceeded == 0) {
                hdr.int_md.mtu_exceeded = 1;
                meta.int_sum = meta.int_sum + 0x0200;
            }
        } else {
            count_hop();
            if (bits[15:15] == 1) { push_node(); }
            if (bits[14:14] == 1) { push_ports(); }
            if (bits[13:13] == 1) { push_latency(); }
            if (bits[12:12] == 1) { push_queue(); }
            if (bits[11:11] == 1) { push_ingress_time(); }
            if (bits[10:10] == 1) { push_egress_time(); }
            if (bits[9:9] == 1) { push_interfaces(); }
            if (bits[8:8] == 1) { push_utilisation(); }
            if (bits[7:7] == 1) { push_buffer(); }
            if (ones != 0) {
                // 0xffff changes no one's complement sum.
                if (ones[0:0] == 1) { hdr.int_ones_1.setValid(); hdr.int_ones_1.ones = ~32w0; }
                if (ones[1:1] == 1) { hdr.int_ones_2.setValid(); hdr.int_ones_2.ones = ~64w0; }
                if (ones[2:2] == 1) { hdr.int_ones_4.setValid(); hdr.int_ones_4.ones = ~128w0; }
                if (ones[3:3] == 1) { hdr.int_ones_8.setValid(); hdr.int_ones_8.ones = ~256w0; }
                if (ones[4:4] == 1) { hdr.int_ones_16.setValid(); hdr.int_ones_16.ones = ~512w0; }
            }
            if (hdr.udp.isValid()) {
                sum = sum + (bit<32>)bytes;   // also in UDP's own header
            }
            meta.int_sum = meta.int_sum + sum;
        }
    }
}

#endif
