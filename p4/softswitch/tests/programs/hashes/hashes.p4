// Every hash of v1model over fields that do not end on bytes, and registers.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files hashes.p4info.txt -o hashes.json hashes.p4
#include <core.p4>
#include <v1model.p4>

header in_t {
    bit<8> x;
    bit<24> y;
    bit<33> w;
    bit<7> z;
    bit<48> v;
    bit<16> max;
}

header out_t {
    bit<32> crc32;
    bit<32> crc32_custom;
    bit<16> crc16;
    bit<16> crc16_custom;
    bit<16> csum16;
    bit<16> xor16;
    bit<64> identity;
    bit<16> ranged;
    bit<16> by_packet;
    bit<32> small;
    bit<48> before;
}

struct headers_t {
    in_t i;
    out_t o;
}

struct metadata_t { }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.i);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<48>>(4) seen;
    apply {
        std.egress_spec = 2;
        hdr.o.setValid();
        hash(hdr.o.crc32, HashAlgorithm.crc32, 32w0,
             { hdr.i.x, hdr.i.y, hdr.i.w, hdr.i.z }, 64w0x100000000);
        hash(hdr.o.crc32_custom, HashAlgorithm.crc32_custom, 32w0,
             { hdr.i.w, hdr.i.v }, 64w0x100000000);
        hash(hdr.o.crc16, HashAlgorithm.crc16, 16w0,
             { hdr.i.x, hdr.i.z, hdr.i.v }, 32w0x10000);
        hash(hdr.o.crc16_custom, HashAlgorithm.crc16_custom, 16w0,
             { hdr.i.w, hdr.i.z, 16w0x1234 }, 32w0x10000);
        hash(hdr.o.csum16, HashAlgorithm.csum16, 16w0,
             { hdr.i.x, hdr.i.y, hdr.i.v }, 32w0x10000);
        hash(hdr.o.xor16, HashAlgorithm.xor16, 16w0,
             { hdr.i.y, hdr.i.v }, 32w0x10000);
        hash(hdr.o.identity, HashAlgorithm.identity, 64w0,
             { hdr.i.x, hdr.i.y }, 64w0xffffffffffffffff);
        hash(hdr.o.ranged, HashAlgorithm.crc16, 16w1000, { hdr.i.v }, 16w37);
        hash(hdr.o.by_packet, HashAlgorithm.crc32, 16w5, { hdr.i.w }, hdr.i.max);
        hash(hdr.o.small, HashAlgorithm.crc32, 32w0xfffffff0, { hdr.i.z }, 32w0x20);
        bit<32> cell = (bit<32>)hdr.i.x & 3;
        seen.read(hdr.o.before, cell);
        seen.write(cell, hdr.o.before + hdr.i.v);
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.i);
        packet.emit(hdr.o);
    }
}

V1Switch(Parse(), Verify(), In(), Out(), Update(), Deparse()) main;
