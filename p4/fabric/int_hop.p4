// INT, hop: what this switch adds to a measured packet, or takes out of it.
//
// Reads: int_state; egress port.
// Decides: by `int_port`, whether the next node is a switch (this one pushes, as source or transit) or a
// host (this one is the sink and strips). A port without an entry sends INT on as it came.
// Writes: through int_source.p4, int_push.p4 and int_strip.p4, the INT headers; then the lengths and the
// transport checksum. The checksum is updated by the difference (RFC 1624), so that a wrong one stays as
// wrong as it was, and the sink's difference undoes the source's. A UDP checksum of 0 stays 0, one that
// comes out as 0 is sent as 0xffff (RFC 768). At the sink, checksum.p4 does that. Under an added UDP header
// the packet's own is not touched.

#ifndef FABRIC_INT_HOP_P4
#define FABRIC_INT_HOP_P4

control IntHop(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    IntAbout() about;
    IntSource() source;
    IntPush() push;
    IntStrip() strip;

    bit<1> pushes = 0;
    bit<1> strips = 0;
    bit<32> node_id = 0;
    bit<16> mtu = 0;
    bit<16> checksum = 0;

    @brief("A switch is at the other end: push as node `node`, as far as IP packets of `ip_mtu` bytes go.")
    action int_push(bit<32> node, bit<16> ip_mtu) {
        pushes = 1;
        node_id = node;
        mtu = ip_mtu;
    }

    @brief("A host is at the other end: strip, and report the path by clone session `session` unless that is 0.")
    action int_strip(bit<16> session) {
        strips = 1;
        meta.report.session = session;
    }

    @brief("What INT does at each egress port.")
    table int_port {
        key = { std.egress_port: exact @name("egress_port"); }
        actions = { int_push; int_strip; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    @hidden
    action update_checksum_field() {
        bit<32> sum = (bit<32>)(checksum ^ 0xffff) + meta.int_sum;
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        checksum = (bit<16>)sum ^ 0xffff;
    }

    apply {
        if (int_port.apply().hit) {
            about.apply(hdr, meta, std);
            if (hdr.ipv4.isValid()) {
                meta.ip_len = hdr.ipv4.total_len;
            } else {
                meta.ip_len = hdr.ipv6.payload_len + IPV6_BYTES;
            }
            if (pushes == 1) {
                if (meta.int_state == INT_SOURCE) {
                    source.apply(hdr, meta, mtu);
                }
                if (meta.int_state == INT_CARRIED) {
                    push.apply(hdr, meta, std, node_id, mtu);
                }
            } else if (strips == 1 && meta.int_state == INT_CARRIED) {
                strip.apply(hdr, meta, std);
            }

            if (hdr.ipv4.isValid()) {
                hdr.ipv4.total_len = hdr.ipv4.total_len + meta.int_grow;
            } else {
                hdr.ipv6.payload_len = hdr.ipv6.payload_len + meta.int_grow;
            }
            if (hdr.udp.isValid()) {
                hdr.udp.length = hdr.udp.length + meta.int_grow;
                meta.int_checksum = hdr.udp.checksum ^ 0xffff;
                if (hdr.udp.checksum != 0 && meta.int_stripped == 0) {
                    checksum = hdr.udp.checksum;
                    update_checksum_field();
                    if (checksum == 0) {
                        checksum = 0xffff;
                    }
                    hdr.udp.checksum = checksum;
                }
            } else if (hdr.tcp.isValid()) {
                meta.int_checksum = hdr.tcp.checksum ^ 0xffff;
                if (meta.int_stripped == 0) {
                    checksum = hdr.tcp.checksum;
                    update_checksum_field();
                    hdr.tcp.checksum = checksum;
                }
            }
        }
    }
}

#endif
