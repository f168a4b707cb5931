// INT, strip: the packet leaves the fabric as it came in.
//
// Reads: shim, INT-MD header, stack.
// Decides: a packet that says so (flag D) ends here, once it is reported, and counts as dropped with
// reason int.
// Writes: DSCP, UDP port or IP protocol from the shim; INT headers go. What is taken out is kept for the
// report, which shows the packet as it came in here. The transport checksum follows in checksum.p4, which
// alone can sum up a stack of any length.

#ifndef FABRIC_INT_STRIP_P4
#define FABRIC_INT_STRIP_P4

control IntStrip(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> bytes = 0;

    @hidden
    action keep() {
        hdr.kept_udp = hdr.udp;
        hdr.kept_shim = hdr.int_shim;
        hdr.kept_md = hdr.int_md;
        hdr.kept_stack = hdr.int_stack;
        meta.report.stripped = 1;
        meta.report.ip_len = meta.ip_len;
        meta.report.tcp_checksum = hdr.tcp.checksum;
    }

    @hidden
    action take_out() {
        bytes = ((bit<16>)hdr.int_shim.length << 2) + 4;
        meta.int_grow = 0 - bytes;
        meta.int_sum = (bit<32>)(bytes ^ 0xffff);   // the length, as TCP's pseudo header has it
        meta.int_stripped = 1;
        hdr.int_shim.setInvalid();
        hdr.int_md.setInvalid();
        hdr.int_stack.setInvalid();
    }

    apply {
        keep();
        take_out();
        if (hdr.ipv4.isValid()) {
            meta.report.dscp = hdr.ipv4.dscp;
            meta.report.protocol = hdr.ipv4.protocol;
        } else {
            meta.report.dscp = hdr.ipv6.dscp;
            meta.report.protocol = hdr.ipv6.next_header;
        }
        if (hdr.kept_shim.npt == INT_NPT_IN_PLACE) {
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.dscp = hdr.kept_shim.field[7:2];
            } else {
                hdr.ipv6.dscp = hdr.kept_shim.field[7:2];
            }
        } else if (hdr.kept_shim.npt == INT_NPT_PORT) {
            meta.int_sum = meta.int_sum + (bit<32>)hdr.kept_shim.field
                + (bit<32>)(hdr.udp.dst_port ^ 0xffff);
            hdr.udp.dst_port = hdr.kept_shim.field;
        } else {
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.protocol = hdr.kept_shim.field[7:0];
            } else {
                hdr.ipv6.next_header = hdr.kept_shim.field[7:0];
            }
            hdr.udp.setInvalid();
            meta.int_grow = meta.int_grow - INT_UDP_BYTES;
        }
        if (hdr.udp.isValid()) {
            meta.int_sum = meta.int_sum + (bit<32>)(bytes ^ 0xffff);   // also in UDP's own header
        }
        if (hdr.kept_md.discard == 1) {
            meta.verdict = VERDICT_DROP;
            drops.count((bit<32>)(std.ingress_port ++ DROP_INT));
            mark_to_drop(std);
        }
    }
}

#endif
