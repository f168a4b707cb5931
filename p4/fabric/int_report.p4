// INT, report: a clone becomes a Telemetry Report v2.0.
//
// Reads: what int_drops.p4 or int_events.p4 wrote down about the packet.
// Decides: where the report goes, by `int_collector`; without an entry it is dropped.
// Writes: Ethernet, IPv4 and UDP to the collector, one report with this hop's metadata, then the packet
// it is about from the IP header on, cut to its headers: at the sink as it came in, with its INT stack. A
// collector behind the controller gets the same in a packet-in with reason int_report. The UDP checksum
// is 0, for it would cover what is cut off.

#ifndef FABRIC_INT_REPORT_P4
#define FABRIC_INT_REPORT_P4

control IntReport(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> inner = 0;   // bytes of the packet that are shown
    bit<16> most = REPORT_INNER_MAX;
    bit<16> words = 0;
    bit<8> metadata = 0;
    bit<4> in_type = REPORT_INNER_IPV4;

    // A register, for it is the data plane that counts; the slot is in the table.
    @brief("Next sequence number, by collector's slot.")
    register<bit<22>>(REPORT_COLLECTORS) int_report_sequence;

    @brief("Send to `dst_addr`, UDP port `dst_port`, as node `node`, part `hw_id`; sequence numbers of `slot`.")
    action send_report(bit<32> slot, bit<32> node, bit<6> hw_id, bit<48> src_mac, bit<48> dst_mac,
                       bit<32> src_addr, bit<32> dst_addr, bit<16> src_port, bit<16> dst_port) {
        bit<22> sequence;
        int_report_sequence.read(sequence, slot);
        int_report_sequence.write(slot, sequence + 1);
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.vlan.setInvalid();
        hdr.report_ipv4.setValid();
        hdr.report_ipv4.version = 4;
        hdr.report_ipv4.ihl = 5;
        hdr.report_ipv4.dscp = 0;
        hdr.report_ipv4.ecn = ECN_NOT_ECT;
        hdr.report_ipv4.identification = 0;
        hdr.report_ipv4.reserved = 0;
        hdr.report_ipv4.dont_fragment = 1;
        hdr.report_ipv4.more_fragments = 0;
        hdr.report_ipv4.fragment_offset = 0;
        hdr.report_ipv4.ttl = REPORT_TTL;
        hdr.report_ipv4.protocol = PROTO_UDP;
        hdr.report_ipv4.src_addr = src_addr;
        hdr.report_ipv4.dst_addr = dst_addr;
        hdr.report_udp.setValid();
        hdr.report_udp.src_port = src_port;
        hdr.report_udp.dst_port = dst_port;
        hdr.report_udp.checksum = 0;
        hdr.report_group.setValid();
        hdr.report_group.version = REPORT_VERSION;
        hdr.report_group.hw_id = hw_id;
        hdr.report_group.sequence = sequence;
        hdr.report_group.node_id = node;
        hdr.report_item.setValid();
        hdr.report_item.rep_type = REPORT_TYPE_INT;
        hdr.report_item.dropped = meta.report.dropped;
        hdr.report_item.congested = meta.report.congested;
        hdr.report_item.tracked = meta.report.tracked;
        hdr.report_item.intermediate = meta.report.intermediate;
        hdr.report_item.reserved = 0;
        hdr.report_item.md_bits = meta.report.md_bits;
        hdr.report_item.domain_id = 0;
        hdr.report_item.ds_md_bits = 0;
        hdr.report_item.ds_md_status = 0;
    }

    @brief("Who gets the reports of each clone session; the session's port leads there.")
    table int_collector {
        key = { meta.report.session: exact @name("session"); }
        actions = { send_report; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    @hidden
    action as_it_came_v4() {
        hdr.ipv4.dscp = meta.report.dscp;
        hdr.ipv4.protocol = meta.report.protocol;
        hdr.ipv4.total_len = meta.report.ip_len;
    }

    @hidden
    action as_it_came_v6() {
        hdr.ipv6.dscp = meta.report.dscp;
        hdr.ipv6.next_header = meta.report.protocol;
        hdr.ipv6.payload_len = meta.report.ip_len - IPV6_BYTES;
    }

    @hidden
    action int_as_it_came() {
        hdr.udp = hdr.kept_udp;
        hdr.int_shim = hdr.kept_shim;
        hdr.int_md = hdr.kept_md;
        hdr.int_stack = hdr.kept_stack;
        hdr.tcp.checksum = meta.report.tcp_checksum;
    }

    @hidden
    action tell_ports() {
        hdr.report_ports.setValid();
        hdr.report_ports.ingress = (bit<16>)meta.report.ingress_port;
        hdr.report_ports.egress = meta.report.egress_port;
        metadata = metadata + 1;
    }

    @hidden
    action tell_latency() {
        hdr.report_latency.setValid();
        hdr.report_latency.ns = (bit<32>)((meta.report.egress_time - meta.report.ingress_time)
                                          * (bit<48>)NS_PER_US);
        metadata = metadata + 1;
    }

    @hidden
    action tell_queue() {
        hdr.report_queue.setValid();
        hdr.report_queue.id = (bit<8>)meta.report.queue;
        hdr.report_queue.depth = (bit<24>)meta.report.depth;
        metadata = metadata + 1;
    }

    @hidden
    action tell_ingress_time() {
        hdr.report_ingress_time.setValid();
        hdr.report_ingress_time.ns = (bit<64>)meta.report.ingress_time * NS_PER_US;
        metadata = metadata + 2;
    }

    @hidden
    action tell_egress_time() {
        hdr.report_egress_time.setValid();
        hdr.report_egress_time.ns = (bit<64>)meta.report.egress_time * NS_PER_US;
        metadata = metadata + 2;
    }

    @hidden
    action tell_interfaces() {
        hdr.report_interfaces.setValid();
        hdr.report_interfaces.ingress = meta.report.ingress_interface;
        hdr.report_interfaces.egress = meta.report.egress_interface;
        metadata = metadata + 2;
    }

    @hidden
    action tell_utilisation() {
        hdr.report_utilisation.setValid();
        hdr.report_utilisation.share = meta.report.utilisation;
        metadata = metadata + 1;
    }

    @hidden
    action tell_buffer() {
        hdr.report_buffer.setValid();
        hdr.report_buffer.id = BUFFER_OF(meta.report.egress_port, meta.report.queue);
        hdr.report_buffer.occupancy = (bit<24>)meta.report.depth;
        metadata = metadata + 1;
    }

    @hidden
    action tell_drop() {
        hdr.report_drop.setValid();
        hdr.report_drop.queue = (bit<8>)meta.report.queue;
        hdr.report_drop.reason = (bit<8>)meta.report.drop_reason;
        hdr.report_drop.pad = 0;
        metadata = metadata + 1;
    }

    @hidden
    action set_lengths() {
        inner = inner & 0xfffc;
        words = (inner >> 2) + (bit<16>)metadata + 2;
        hdr.report_item.in_type = in_type;
        hdr.report_item.length = (bit<8>)words;
        hdr.report_item.md_length = metadata;
        hdr.report_udp.length = (words << 2) + REPORT_UDP_FIXED_BYTES;
        hdr.report_ipv4.total_len = hdr.report_udp.length + IPV4_BYTES;
    }

    apply {
        if (!int_collector.apply().hit) {
            meta.verdict = VERDICT_DROP;
            mark_to_drop(std);
        } else {
            if (meta.report.stripped == 1) {
                int_as_it_came();
                if (hdr.ipv4.isValid()) {
                    as_it_came_v4();
                } else {
                    as_it_came_v6();
                }
                if (hdr.int_shim.npt != INT_NPT_IN_PLACE) {
                    most = most + INT_UDP_BYTES;
                }
            }
            if (hdr.int_shim.isValid()) {
                most = most + 4 + ((bit<16>)hdr.int_shim.length << 2);
            }

            bit<16> bits = meta.report.md_bits;
            if (bits[14:14] == 1) { tell_ports(); }
            if (bits[13:13] == 1) { tell_latency(); }
            if (bits[12:12] == 1) { tell_queue(); }
            if (bits[11:11] == 1) { tell_ingress_time(); }
            if (bits[10:10] == 1) { tell_egress_time(); }
            if (bits[9:9] == 1) { tell_interfaces(); }
            if (bits[8:8] == 1) { tell_utilisation(); }
            if (bits[7:7] == 1) { tell_buffer(); }
            if (bits[0:0] == 1) { tell_drop(); }

            if (hdr.ipv4.isValid()) {
                inner = hdr.ipv4.total_len;
            } else {
                in_type = REPORT_INNER_IPV6;
                inner = hdr.ipv6.payload_len + IPV6_BYTES;
            }
            if (inner > most) {
                inner = most;
            }
            if (inner > meta.report.frame_len - ETHERNET_BYTES) {
                inner = meta.report.frame_len - ETHERNET_BYTES;
            }
            set_lengths();
            if (words > 255) {
                hdr.report_item.length = 255;   // to the end of the datagram
            }
            if (std.egress_port == CPU_PORT) {
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = meta.report.ingress_port;
                hdr.packet_in.reason = PUNT_INT_REPORT;
                truncate((bit<32>)(hdr.report_ipv4.total_len + ETHERNET_BYTES + PACKET_IN_BYTES));
            } else {
                truncate((bit<32>)(hdr.report_ipv4.total_len + ETHERNET_BYTES));
            }
        }
    }
}

#endif
