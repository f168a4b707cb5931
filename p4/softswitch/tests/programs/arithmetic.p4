// Arithmetic at widths on both sides of the machine's words: the packet brings
// two operands and a shift of each width, unsigned and signed, and takes the
// results back.
// Compiled with: p4c-bm2-ss --std p4-16 -o arithmetic.json arithmetic.p4
#include <core.p4>
#include <v1model.p4>

header unsigned8_t {
    bit<8> shift;
    bit<8> a;
    bit<8> b;
    bit<8> sum;
    bit<8> difference;
    bit<8> product;
    bit<8> both;
    bit<8> either;
    bit<8> differ;
    bit<8> inverse;
    bit<8> left;
    bit<8> right;
    bit<8> plus;
    bit<8> minus;
    bit<8> slice;
    bit<8> order;
}

header signed8_t {
    bit<8> shift;
    int<8> a;
    int<8> b;
    int<8> sum;
    int<8> difference;
    int<8> product;
    int<8> right;
    int<8> plus;
    int<8> minus;
    int<8> negated;
    bit<8> order;
}

header unsigned33_t {
    bit<8> shift;
    bit<7> pad_a;
    bit<33> a;
    bit<7> pad_b;
    bit<33> b;
    bit<7> pad_sum;
    bit<33> sum;
    bit<7> pad_difference;
    bit<33> difference;
    bit<7> pad_product;
    bit<33> product;
    bit<7> pad_both;
    bit<33> both;
    bit<7> pad_either;
    bit<33> either;
    bit<7> pad_differ;
    bit<33> differ;
    bit<7> pad_inverse;
    bit<33> inverse;
    bit<7> pad_left;
    bit<33> left;
    bit<7> pad_right;
    bit<33> right;
    bit<7> pad_plus;
    bit<33> plus;
    bit<7> pad_minus;
    bit<33> minus;
    bit<7> pad_slice;
    bit<33> slice;
    bit<8> order;
}

header signed33_t {
    bit<8> shift;
    bit<7> pad_a;
    int<33> a;
    bit<7> pad_b;
    int<33> b;
    bit<7> pad_sum;
    int<33> sum;
    bit<7> pad_difference;
    int<33> difference;
    bit<7> pad_product;
    int<33> product;
    bit<7> pad_right;
    int<33> right;
    bit<7> pad_plus;
    int<33> plus;
    bit<7> pad_minus;
    int<33> minus;
    bit<7> pad_negated;
    int<33> negated;
    bit<8> order;
}

header unsigned64_t {
    bit<8> shift;
    bit<64> a;
    bit<64> b;
    bit<64> sum;
    bit<64> difference;
    bit<64> product;
    bit<64> both;
    bit<64> either;
    bit<64> differ;
    bit<64> inverse;
    bit<64> left;
    bit<64> right;
    bit<64> plus;
    bit<64> minus;
    bit<64> slice;
    bit<8> order;
}

header signed64_t {
    bit<8> shift;
    int<64> a;
    int<64> b;
    int<64> sum;
    int<64> difference;
    int<64> product;
    int<64> right;
    int<64> plus;
    int<64> minus;
    int<64> negated;
    bit<8> order;
}

header unsigned65_t {
    bit<8> shift;
    bit<7> pad_a;
    bit<65> a;
    bit<7> pad_b;
    bit<65> b;
    bit<7> pad_sum;
    bit<65> sum;
    bit<7> pad_difference;
    bit<65> difference;
    bit<7> pad_product;
    bit<65> product;
    bit<7> pad_both;
    bit<65> both;
    bit<7> pad_either;
    bit<65> either;
    bit<7> pad_differ;
    bit<65> differ;
    bit<7> pad_inverse;
    bit<65> inverse;
    bit<7> pad_left;
    bit<65> left;
    bit<7> pad_right;
    bit<65> right;
    bit<7> pad_plus;
    bit<65> plus;
    bit<7> pad_minus;
    bit<65> minus;
    bit<7> pad_slice;
    bit<65> slice;
    bit<8> order;
}

header signed65_t {
    bit<8> shift;
    bit<7> pad_a;
    int<65> a;
    bit<7> pad_b;
    int<65> b;
    bit<7> pad_sum;
    int<65> sum;
    bit<7> pad_difference;
    int<65> difference;
    bit<7> pad_product;
    int<65> product;
    bit<7> pad_right;
    int<65> right;
    bit<7> pad_plus;
    int<65> plus;
    bit<7> pad_minus;
    int<65> minus;
    bit<7> pad_negated;
    int<65> negated;
    bit<8> order;
}

header unsigned128_t {
    bit<8> shift;
    bit<128> a;
    bit<128> b;
    bit<128> sum;
    bit<128> difference;
    bit<128> product;
    bit<128> both;
    bit<128> either;
    bit<128> differ;
    bit<128> inverse;
    bit<128> left;
    bit<128> right;
    bit<128> plus;
    bit<128> minus;
    bit<128> slice;
    bit<8> order;
}

header signed128_t {
    bit<8> shift;
    int<128> a;
    int<128> b;
    int<128> sum;
    int<128> difference;
    int<128> product;
    int<128> right;
    int<128> plus;
    int<128> minus;
    int<128> negated;
    bit<8> order;
}

struct headers_t {
    unsigned8_t u8;
    signed8_t s8;
    unsigned33_t u33;
    signed33_t s33;
    unsigned64_t u64;
    signed64_t s64;
    unsigned65_t u65;
    signed65_t s65;
    unsigned128_t u128;
    signed128_t s128;
}
struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.u8);
        packet.extract(hdr.s8);
        packet.extract(hdr.u33);
        packet.extract(hdr.s33);
        packet.extract(hdr.u64);
        packet.extract(hdr.s64);
        packet.extract(hdr.u65);
        packet.extract(hdr.s65);
        packet.extract(hdr.u128);
        packet.extract(hdr.s128);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;

        hdr.u8.sum = hdr.u8.a + hdr.u8.b;
        hdr.u8.difference = hdr.u8.a - hdr.u8.b;
        hdr.u8.product = hdr.u8.a * hdr.u8.b;
        hdr.u8.both = hdr.u8.a & hdr.u8.b;
        hdr.u8.either = hdr.u8.a | hdr.u8.b;
        hdr.u8.differ = hdr.u8.a ^ hdr.u8.b;
        hdr.u8.inverse = ~hdr.u8.a;
        hdr.u8.left = hdr.u8.a << hdr.u8.shift;
        hdr.u8.right = hdr.u8.a >> hdr.u8.shift;
        hdr.u8.plus = hdr.u8.a |+| hdr.u8.b;
        hdr.u8.minus = hdr.u8.a |-| hdr.u8.b;
        hdr.u8.slice = (bit<8>)(hdr.u8.a + hdr.u8.b)[6:2];
        hdr.u8.order = 0;
        if (hdr.u8.a < hdr.u8.b) { hdr.u8.order = hdr.u8.order | 1; }
        if (hdr.u8.a <= hdr.u8.b) { hdr.u8.order = hdr.u8.order | 2; }
        if (hdr.u8.a == hdr.u8.b) { hdr.u8.order = hdr.u8.order | 4; }
        if (hdr.u8.a > hdr.u8.b) { hdr.u8.order = hdr.u8.order | 8; }
        hdr.s8.sum = hdr.s8.a + hdr.s8.b;
        hdr.s8.difference = hdr.s8.a - hdr.s8.b;
        hdr.s8.product = hdr.s8.a * hdr.s8.b;
        hdr.s8.right = hdr.s8.a >> hdr.s8.shift;
        hdr.s8.plus = hdr.s8.a |+| hdr.s8.b;
        hdr.s8.minus = hdr.s8.a |-| hdr.s8.b;
        hdr.s8.negated = -hdr.s8.a;
        hdr.s8.order = 0;
        if (hdr.s8.a < hdr.s8.b) { hdr.s8.order = hdr.s8.order | 1; }
        if (hdr.s8.a <= hdr.s8.b) { hdr.s8.order = hdr.s8.order | 2; }
        if (hdr.s8.a == hdr.s8.b) { hdr.s8.order = hdr.s8.order | 4; }
        if (hdr.s8.a > hdr.s8.b) { hdr.s8.order = hdr.s8.order | 8; }

        hdr.u33.sum = hdr.u33.a + hdr.u33.b;
        hdr.u33.difference = hdr.u33.a - hdr.u33.b;
        hdr.u33.product = hdr.u33.a * hdr.u33.b;
        hdr.u33.both = hdr.u33.a & hdr.u33.b;
        hdr.u33.either = hdr.u33.a | hdr.u33.b;
        hdr.u33.differ = hdr.u33.a ^ hdr.u33.b;
        hdr.u33.inverse = ~hdr.u33.a;
        hdr.u33.left = hdr.u33.a << hdr.u33.shift;
        hdr.u33.right = hdr.u33.a >> hdr.u33.shift;
        hdr.u33.plus = hdr.u33.a |+| hdr.u33.b;
        hdr.u33.minus = hdr.u33.a |-| hdr.u33.b;
        hdr.u33.slice = (bit<33>)(hdr.u33.a + hdr.u33.b)[31:11];
        hdr.u33.order = 0;
        if (hdr.u33.a < hdr.u33.b) { hdr.u33.order = hdr.u33.order | 1; }
        if (hdr.u33.a <= hdr.u33.b) { hdr.u33.order = hdr.u33.order | 2; }
        if (hdr.u33.a == hdr.u33.b) { hdr.u33.order = hdr.u33.order | 4; }
        if (hdr.u33.a > hdr.u33.b) { hdr.u33.order = hdr.u33.order | 8; }
        hdr.s33.sum = hdr.s33.a + hdr.s33.b;
        hdr.s33.difference = hdr.s33.a - hdr.s33.b;
        hdr.s33.product = hdr.s33.a * hdr.s33.b;
        hdr.s33.right = hdr.s33.a >> hdr.s33.shift;
        hdr.s33.plus = hdr.s33.a |+| hdr.s33.b;
        hdr.s33.minus = hdr.s33.a |-| hdr.s33.b;
        hdr.s33.negated = -hdr.s33.a;
        hdr.s33.order = 0;
        if (hdr.s33.a < hdr.s33.b) { hdr.s33.order = hdr.s33.order | 1; }
        if (hdr.s33.a <= hdr.s33.b) { hdr.s33.order = hdr.s33.order | 2; }
        if (hdr.s33.a == hdr.s33.b) { hdr.s33.order = hdr.s33.order | 4; }
        if (hdr.s33.a > hdr.s33.b) { hdr.s33.order = hdr.s33.order | 8; }

        hdr.u64.sum = hdr.u64.a + hdr.u64.b;
        hdr.u64.difference = hdr.u64.a - hdr.u64.b;
        hdr.u64.product = hdr.u64.a * hdr.u64.b;
        hdr.u64.both = hdr.u64.a & hdr.u64.b;
        hdr.u64.either = hdr.u64.a | hdr.u64.b;
        hdr.u64.differ = hdr.u64.a ^ hdr.u64.b;
        hdr.u64.inverse = ~hdr.u64.a;
        hdr.u64.left = hdr.u64.a << hdr.u64.shift;
        hdr.u64.right = hdr.u64.a >> hdr.u64.shift;
        hdr.u64.plus = hdr.u64.a |+| hdr.u64.b;
        hdr.u64.minus = hdr.u64.a |-| hdr.u64.b;
        hdr.u64.slice = (bit<64>)(hdr.u64.a + hdr.u64.b)[62:21];
        hdr.u64.order = 0;
        if (hdr.u64.a < hdr.u64.b) { hdr.u64.order = hdr.u64.order | 1; }
        if (hdr.u64.a <= hdr.u64.b) { hdr.u64.order = hdr.u64.order | 2; }
        if (hdr.u64.a == hdr.u64.b) { hdr.u64.order = hdr.u64.order | 4; }
        if (hdr.u64.a > hdr.u64.b) { hdr.u64.order = hdr.u64.order | 8; }
        hdr.s64.sum = hdr.s64.a + hdr.s64.b;
        hdr.s64.difference = hdr.s64.a - hdr.s64.b;
        hdr.s64.product = hdr.s64.a * hdr.s64.b;
        hdr.s64.right = hdr.s64.a >> hdr.s64.shift;
        hdr.s64.plus = hdr.s64.a |+| hdr.s64.b;
        hdr.s64.minus = hdr.s64.a |-| hdr.s64.b;
        hdr.s64.negated = -hdr.s64.a;
        hdr.s64.order = 0;
        if (hdr.s64.a < hdr.s64.b) { hdr.s64.order = hdr.s64.order | 1; }
        if (hdr.s64.a <= hdr.s64.b) { hdr.s64.order = hdr.s64.order | 2; }
        if (hdr.s64.a == hdr.s64.b) { hdr.s64.order = hdr.s64.order | 4; }
        if (hdr.s64.a > hdr.s64.b) { hdr.s64.order = hdr.s64.order | 8; }

        hdr.u65.sum = hdr.u65.a + hdr.u65.b;
        hdr.u65.difference = hdr.u65.a - hdr.u65.b;
        hdr.u65.product = hdr.u65.a * hdr.u65.b;
        hdr.u65.both = hdr.u65.a & hdr.u65.b;
        hdr.u65.either = hdr.u65.a | hdr.u65.b;
        hdr.u65.differ = hdr.u65.a ^ hdr.u65.b;
        hdr.u65.inverse = ~hdr.u65.a;
        hdr.u65.left = hdr.u65.a << hdr.u65.shift;
        hdr.u65.right = hdr.u65.a >> hdr.u65.shift;
        hdr.u65.plus = hdr.u65.a |+| hdr.u65.b;
        hdr.u65.minus = hdr.u65.a |-| hdr.u65.b;
        hdr.u65.slice = (bit<65>)(hdr.u65.a + hdr.u65.b)[63:21];
        hdr.u65.order = 0;
        if (hdr.u65.a < hdr.u65.b) { hdr.u65.order = hdr.u65.order | 1; }
        if (hdr.u65.a <= hdr.u65.b) { hdr.u65.order = hdr.u65.order | 2; }
        if (hdr.u65.a == hdr.u65.b) { hdr.u65.order = hdr.u65.order | 4; }
        if (hdr.u65.a > hdr.u65.b) { hdr.u65.order = hdr.u65.order | 8; }
        hdr.s65.sum = hdr.s65.a + hdr.s65.b;
        hdr.s65.difference = hdr.s65.a - hdr.s65.b;
        hdr.s65.product = hdr.s65.a * hdr.s65.b;
        hdr.s65.right = hdr.s65.a >> hdr.s65.shift;
        hdr.s65.plus = hdr.s65.a |+| hdr.s65.b;
        hdr.s65.minus = hdr.s65.a |-| hdr.s65.b;
        hdr.s65.negated = -hdr.s65.a;
        hdr.s65.order = 0;
        if (hdr.s65.a < hdr.s65.b) { hdr.s65.order = hdr.s65.order | 1; }
        if (hdr.s65.a <= hdr.s65.b) { hdr.s65.order = hdr.s65.order | 2; }
        if (hdr.s65.a == hdr.s65.b) { hdr.s65.order = hdr.s65.order | 4; }
        if (hdr.s65.a > hdr.s65.b) { hdr.s65.order = hdr.s65.order | 8; }

        hdr.u128.sum = hdr.u128.a + hdr.u128.b;
        hdr.u128.difference = hdr.u128.a - hdr.u128.b;
        hdr.u128.product = hdr.u128.a * hdr.u128.b;
        hdr.u128.both = hdr.u128.a & hdr.u128.b;
        hdr.u128.either = hdr.u128.a | hdr.u128.b;
        hdr.u128.differ = hdr.u128.a ^ hdr.u128.b;
        hdr.u128.inverse = ~hdr.u128.a;
        hdr.u128.left = hdr.u128.a << hdr.u128.shift;
        hdr.u128.right = hdr.u128.a >> hdr.u128.shift;
        hdr.u128.plus = hdr.u128.a |+| hdr.u128.b;
        hdr.u128.minus = hdr.u128.a |-| hdr.u128.b;
        hdr.u128.slice = (bit<128>)(hdr.u128.a + hdr.u128.b)[126:42];
        hdr.u128.order = 0;
        if (hdr.u128.a < hdr.u128.b) { hdr.u128.order = hdr.u128.order | 1; }
        if (hdr.u128.a <= hdr.u128.b) { hdr.u128.order = hdr.u128.order | 2; }
        if (hdr.u128.a == hdr.u128.b) { hdr.u128.order = hdr.u128.order | 4; }
        if (hdr.u128.a > hdr.u128.b) { hdr.u128.order = hdr.u128.order | 8; }
        hdr.s128.sum = hdr.s128.a + hdr.s128.b;
        hdr.s128.difference = hdr.s128.a - hdr.s128.b;
        hdr.s128.product = hdr.s128.a * hdr.s128.b;
        hdr.s128.right = hdr.s128.a >> hdr.s128.shift;
        hdr.s128.plus = hdr.s128.a |+| hdr.s128.b;
        hdr.s128.minus = hdr.s128.a |-| hdr.s128.b;
        hdr.s128.negated = -hdr.s128.a;
        hdr.s128.order = 0;
        if (hdr.s128.a < hdr.s128.b) { hdr.s128.order = hdr.s128.order | 1; }
        if (hdr.s128.a <= hdr.s128.b) { hdr.s128.order = hdr.s128.order | 2; }
        if (hdr.s128.a == hdr.s128.b) { hdr.s128.order = hdr.s128.order | 4; }
        if (hdr.s128.a > hdr.s128.b) { hdr.s128.order = hdr.s128.order | 8; }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
