// Digests of one type from several places, one of them of a packet that is dropped, and of a second
// type. Of two in one packet, the last counts.
//
// Compiled with: p4c-bm2-ss --std p4-16 --p4runtime-files digests.p4info.txt -o digests.json digests.p4
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> what;
    bit<48> address;
}

struct headers_t { h_t h; }
struct metadata_t { }
struct learn_t {
    bit<48> address;
    bit<9> port;
}
struct seen_t { bit<8> what; }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 2;
        if (hdr.h.what == 1) {
            digest<learn_t>(1, { hdr.h.address, std.ingress_port });
        } else if (hdr.h.what == 2) {
            digest<seen_t>(2, { hdr.h.what });
            digest<learn_t>(1, { hdr.h.address + 1, std.ingress_port });
        } else if (hdr.h.what == 3) {
            mark_to_drop(std);
            digest<learn_t>(1, { hdr.h.address, 9 });
        } else {
            digest<seen_t>(2, { hdr.h.what });
        }
    }
}

control Eg(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }

V1Switch(Parse(), Verify(), In(), Eg(), Update(), Deparse()) main;
