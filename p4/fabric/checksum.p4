// IPv4 header checksum (RFC 1071), checked before ingress and written after egress.
//
// Verify reads the header and sets std.checksum_error, on which check.p4 drops. Update writes it only
// on packets that were routed: what is punted or sent by the CPU keeps its bytes. TTL, DSCP and ECN
// are no part of any UDP or TCP checksum, nor of RoCEv2's invariant CRC, so no other needs work.

#ifndef FABRIC_CHECKSUM_P4
#define FABRIC_CHECKSUM_P4

#define IPV4_CHECKSUM_FIELDS(ip) { ip.version, ip.ihl, ip.dscp, ip.ecn, ip.total_len, \
    ip.identification, ip.reserved, ip.dont_fragment, ip.more_fragments, ip.fragment_offset, \
    ip.ttl, ip.protocol, ip.src_addr, ip.dst_addr }

control FabricVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FabricUpdateChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && (meta.routed == 1 || hdr.report_ipv4.isValid()),
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.report_ipv4.isValid(), IPV4_CHECKSUM_FIELDS(hdr.report_ipv4),
                        hdr.report_ipv4.checksum, HashAlgorithm.csum16);
    }
}

#endif
