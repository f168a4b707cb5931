// ARS: which bucket of an adaptive group carries this packet?
//
// Reads: the flow's last packet and bucket, the group's mode, the state of members.
// Decides: the bucket. In flowlet modes a flow keeps its bucket until it has paused for longer than the
// group's idle time, so that packets of one burst never overtake each other; in per-packet modes each
// packet chooses. A random choice takes any bucket, so members get their weight; a choice by quality
// compares two random buckets and the one in use, and leaves the one in use only for one that is better by
// at least a band.
// Writes: the flow's bucket and time.

#ifndef FABRIC_ARS_P4
#define FABRIC_ARS_P4

// A flow's cell: [63:32] time of its last packet, [31:16] low bits of its group, [15:0] bucket + 1.
#define FLOWLET_TIME   63:32
#define FLOWLET_GROUP  31:16
#define FLOWLET_BUCKET 15:0
register<bit<64>>(FLOWLETS) flowlet;

control Ars(in bit<32> flow_hash, inout group_t group, inout metadata_t meta, inout standard_metadata_t std,
            out bit<16> bucket) {
    Quality() quality_in_use;
    Quality() quality_first;
    Quality() quality_second;
    bit<64> cell = 0;
    bit<1>  in_use = 0;        // the flow has a bucket of this group
    bit<1>  choose = 0;
    bit<16> first = 0;
    bit<16> second = 0;
    quality_t of_bucket = 0;
    quality_t of_first = 0;
    quality_t of_second = 0;

    @hidden
    action touch() {
        bit<32> slot = (bit<32>)((flow_hash * HASH_MULTIPLIER_3)[31:18]);
        bit<32> now = std.ingress_global_timestamp[31:0];
        flowlet.read(cell, slot);
        in_use = cell[FLOWLET_GROUP] == meta.group_id[15:0] && cell[FLOWLET_BUCKET] != 0
            && cell[FLOWLET_BUCKET] <= group.size ? 1w1 : 0;
        choose = in_use == 0 || now - cell[FLOWLET_TIME] > group.idle ? 1w1 : 0;
        bucket = cell[FLOWLET_BUCKET] - 1;
        flowlet.write(slot, now ++ cell[31:0]);
    }

    @hidden
    action keep() {
        flowlet.write((bit<32>)((flow_hash * HASH_MULTIPLIER_3)[31:18]),
                      std.ingress_global_timestamp[31:0] ++ meta.group_id[15:0] ++ (bucket + 1));
    }

    @hidden
    action draw_one() {
        bit<32> r;
        random(r, 0, 0xffffffff);
        bucket = (bit<16>)(((bit<48>)r * (bit<48>)group.size) >> 32);
    }

    @hidden
    action draw_two() {
        bit<32> r;
        random(r, 0, 0xffffffff);
        first = (bit<16>)(((bit<48>)r * (bit<48>)group.size) >> 32);
        random(r, 0, 0xffffffff);
        second = (bit<16>)(((bit<48>)r * (bit<48>)group.size) >> 32);
    }

    apply {
        touch();
        if (group.mode == ARS_PER_PACKET_RANDOM || group.mode == ARS_FLOWLET_RANDOM) {
            if (choose == 1 || group.mode == ARS_PER_PACKET_RANDOM) {
                draw_one();
                keep();
            }
        } else if (choose == 1 || group.mode == ARS_PER_PACKET_QUALITY) {
            draw_two();
            quality_first.apply(first, group, meta, std, of_first);
            quality_second.apply(second, group, meta, std, of_second);
            of_bucket = QUALITY_DEAD;
            if (in_use == 1) {
                quality_in_use.apply(bucket, group, meta, std, of_bucket);
            } else {
                bucket = first;
            }
            if (of_second < of_first) {
                first = second;
                of_first = of_second;
            }
            if (of_first < of_bucket) {
                bucket = first;
            }
            keep();
        }
    }
}

#endif
