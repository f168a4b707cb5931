// Deparser: the packet as it leaves.
//
// Reads: which headers are valid; a packet-out header never is.
// Writes: those, in wire order.

#ifndef FABRIC_DEPARSER_P4
#define FABRIC_DEPARSER_P4

control FabricDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.link);
        packet.emit(hdr.hello);
        packet.emit(hdr.probe);
        packet.emit(hdr.arp);
        packet.emit(hdr.report_ipv4);
        packet.emit(hdr.report_udp);
        packet.emit(hdr.report_group);
        packet.emit(hdr.report_item);
        packet.emit(hdr.report_ports);
        packet.emit(hdr.report_latency);
        packet.emit(hdr.report_queue);
        packet.emit(hdr.report_ingress_time);
        packet.emit(hdr.report_egress_time);
        packet.emit(hdr.report_interfaces);
        packet.emit(hdr.report_utilisation);
        packet.emit(hdr.report_buffer);
        packet.emit(hdr.report_drop);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.icmp);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
        packet.emit(hdr.int_shim);
        packet.emit(hdr.int_md);
        packet.emit(hdr.int_node);
        packet.emit(hdr.int_ports);
        packet.emit(hdr.int_latency);
        packet.emit(hdr.int_queue);
        packet.emit(hdr.int_ingress_time);
        packet.emit(hdr.int_egress_time);
        packet.emit(hdr.int_interfaces);
        packet.emit(hdr.int_utilisation);
        packet.emit(hdr.int_buffer);
        packet.emit(hdr.int_ones_1);
        packet.emit(hdr.int_ones_2);
        packet.emit(hdr.int_ones_4);
        packet.emit(hdr.int_ones_8);
        packet.emit(hdr.int_ones_16);
        packet.emit(hdr.int_stack);
        packet.emit(hdr.inner_tcp);
        packet.emit(hdr.bth);
    }
}

#endif
