// Spread: which member of the group carries this flow?
//
// Reads: the flow, the group's size and seed.
// Decides: a bucket, and through it a next hop; drop with reason no_group when there is none.
//
// The hash is CRC-32 over the 5-tuple and the destination QP. CRC is linear: seeding it only XORs a
// constant into every value, which renames buckets but leaves tiers choosing alike. So the seed goes in
// before a bit mixer that is not linear (two rounds of multiply and shift), which makes tiers with
// different seeds independent. The bucket is the high word of hash * size: as even as hash % size,
// without a division, and 0 for an empty group.

#ifndef FABRIC_SPREAD_P4
#define FABRIC_SPREAD_P4

control Spread(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> group_size = 0;
    bit<32> group_seed = 0;
    bit<16> bucket = 0;

    action no_group() {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = DROP_NO_GROUP;
    }

    @brief("The group has buckets 0 to `size` - 1; `seed` differs from tier to tier.")
    action set_group(bit<16> size, bit<32> seed) {
        group_size = size;
        group_seed = seed;
    }

    @brief("Groups of next hops.")
    table group {
        key = { meta.group_id: exact @name("group_id"); }
        actions = { set_group; @defaultonly no_group; }
        const default_action = no_group();
        size = 4096;
    }

    @hidden
    action choose_bucket() {
        bit<32> flow_hash;
        hash(flow_hash, HashAlgorithm.crc32, 32w0,
             { meta.src_addr, meta.dst_addr, meta.ip_protocol, meta.src_port, meta.dst_port,
               meta.dest_qp },
             33w0x100000000);
        flow_hash = flow_hash ^ group_seed;
        flow_hash = (flow_hash ^ (flow_hash >> 16)) * HASH_MULTIPLIER_1;
        flow_hash = (flow_hash ^ (flow_hash >> 13)) * HASH_MULTIPLIER_2;
        flow_hash = flow_hash ^ (flow_hash >> 16);
        bucket = (bit<16>)(((bit<48>)flow_hash * (bit<48>)group_size) >> 32);
    }

    @brief("Packets and bytes of each bucket.")
    direct_counter(CounterType.packets_and_bytes) group_bucket_counter;

    @brief("The bucket's member is next hop `nexthop_id`.")
    action bucket_nexthop(bit<32> nexthop_id) {
        meta.nexthop_id = nexthop_id;
    }

    @brief("Buckets of each group; a member's weight is its number of buckets.")
    table group_bucket {
        key = {
            meta.group_id: exact @name("group_id");
            bucket:        exact @name("bucket");
        }
        actions = { bucket_nexthop; @defaultonly no_group; }
        const default_action = no_group();
        counters = group_bucket_counter;
        size = 65536;
    }

    apply {
        if (group.apply().hit) {
            choose_bucket();
            group_bucket.apply();
        }
    }
}

#endif
