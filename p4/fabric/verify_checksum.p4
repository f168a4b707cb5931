// Verify checksum: is the IPv4 header as it was sent (RFC 1071)?
//
// Reads: the header.
// Decides: std.checksum_error, on which check.p4 drops.
// Writes: nothing else. Checksums of UDP and TCP are the hosts' affair.

#ifndef FABRIC_VERIFY_CHECKSUM_P4
#define FABRIC_VERIFY_CHECKSUM_P4

#define IPV4_CHECKSUM_FIELDS(ip) { ip.version, ip.ihl, ip.dscp, ip.ecn, ip.total_len, \
    ip.identification, ip.reserved, ip.dont_fragment, ip.more_fragments, ip.fragment_offset, \
    ip.ttl, ip.protocol, ip.src_addr, ip.dst_addr }

control FabricVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

#endif
