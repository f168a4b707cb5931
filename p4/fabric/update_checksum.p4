// Update checksum: what was changed is covered again.
//
// Reads: headers as they leave; what INT's sink took out.
// Decides: nothing. Only packets that were routed are covered anew: what is punted or sent by the CPU keeps its
// bytes.
// Writes: the IPv4 header's checksum; at INT's sink that of UDP or TCP, by the difference (RFC 1624). TTL, DSCP
// and ECN are no part of any UDP or TCP checksum, nor of RoCEv2's invariant CRC, so no other needs work.

#ifndef FABRIC_UPDATE_CHECKSUM_P4
#define FABRIC_UPDATE_CHECKSUM_P4

#define INT_SINK_FIELDS { meta.int_complement, meta.int_sum, meta.int_checksum }

control FabricUpdateChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && (meta.routed == 1 || hdr.report_ipv4.isValid()),
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
        // INT's sink. The complement of what went out is added, as RFC 1624 does.
        update_checksum(meta.int_stripped == 1,
                        { hdr.kept_shim.type, hdr.kept_shim.npt, hdr.kept_shim.reserved,
                          hdr.kept_shim.length, hdr.kept_shim.field, hdr.kept_md.version,
                          hdr.kept_md.discard, hdr.kept_md.hops_exceeded, hdr.kept_md.mtu_exceeded,
                          hdr.kept_md.reserved, hdr.kept_md.hop_ml, hdr.kept_md.remaining_hops,
                          hdr.kept_md.instructions, hdr.kept_md.domain_id,
                          hdr.kept_md.ds_instructions, hdr.kept_md.ds_flags, hdr.kept_stack.words },
                        meta.int_complement, HashAlgorithm.csum16);
        update_checksum(meta.int_stripped == 1 && hdr.tcp.isValid(), INT_SINK_FIELDS,
                        hdr.tcp.checksum, HashAlgorithm.csum16);
        update_checksum(meta.int_stripped == 1 && hdr.udp.isValid() && hdr.udp.checksum != 0,
                        INT_SINK_FIELDS, hdr.udp.checksum, HashAlgorithm.csum16);
        // A UDP checksum that was there and comes out as 0 is sent as 0xffff: the complement of 0.
        update_checksum(meta.int_stripped == 1 && hdr.udp.isValid() && hdr.udp.checksum == 0
                            && meta.int_checksum != 0xffff,
                        { 16w0 }, hdr.udp.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.report_ipv4.isValid(), IPV4_CHECKSUM_FIELDS(hdr.report_ipv4),
                        hdr.report_ipv4.checksum, HashAlgorithm.csum16);
    }
}

#endif
