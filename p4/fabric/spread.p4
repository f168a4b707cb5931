// Spread: which member of the group carries this packet?
//
// Reads: the flow, the group's parameters, which neighbours are alive.
// Decides: a bucket, and through it a next hop; drop with reason no_group when there is none. Fixed groups take
// the bucket of the flow's hash, others ask ars.p4. When the bucket's member is dead, failover.p4 takes
// another: so a failure moves the dead member's buckets alone, and they come back with it.
//
// The hash is CRC-32 over the 5-tuple and the destination QP. CRC is linear: seeding it only XORs a
// constant into every value, which renames buckets but leaves tiers choosing alike. So the seed goes in
// before a bit mixer that is not linear (two rounds of multiply and shift), which makes tiers with
// different seeds independent. The bucket is the high word of hash * size: as even as hash % size,
// without a division, and 0 for an empty group.

#ifndef FABRIC_SPREAD_P4
#define FABRIC_SPREAD_P4

control Spread(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Ars() ars;
    Alive() alive;
    Failover() failover;
    group_t params = { 0, 0, ARS_FIXED, 0, 0, 0, 0, 0, 0, 0 };
    bit<32> flow_hash = 0;
    bit<16> bucket = 0;
    bit<1> dead = 0;
    bit<1> lost = 0;
    bit<1> gray = 0;
    quality_t path_band = 0;

    action no_group() {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = DROP_NO_GROUP;
    }

    @brief("The group has buckets 0 to `size` - 1; `seed` differs from tier to tier.")
    action set_group(bit<16> size, bit<32> seed) {
        params.size = size;
        params.seed = seed;
    }

    @brief("As set_group, with a mode (0 fixed, 1 flowlet-random, 2 flowlet-quality, 3 per-packet-random, 4 per-packet-quality), and members that are watched.")
    @description("idle: us without a packet that end a flowlet. Bands of a port: packets waiting >> queue_shift, plus its used share of 65536 >> use_shift. path_age: us after which the probes of a path count as stopped; 0 ignores paths beyond the neighbour. gray_is_dead: links that lose packets are not used. ports: bit n says that port first_port + n is a member; all members have ports below 256, or all from 256 on.")
    action set_ars_group(bit<16> size, bit<32> seed, ars_mode_t mode, bit<32> idle,
                         bit<5> queue_shift, bit<5> use_shift, bit<32> path_age,
                         bit<1> gray_is_dead, port_t first_port, bit<128> ports) {
        params = { size, seed, mode, idle, queue_shift, use_shift, path_age, gray_is_dead,
                   first_port, ports };
    }

    @brief("Groups of next hops.")
    table group {
        key = { meta.group_id: exact @name("group_id"); }
        actions = { set_group; set_ars_group; @defaultonly no_group; }
        const default_action = no_group();
        size = 4096;
    }

    @hidden
    action hash_flow() {
        hash(flow_hash, HashAlgorithm.crc32, 32w0,
             { meta.src_addr, meta.dst_addr, meta.ip_protocol, meta.src_port, meta.dst_port,
               meta.dest_qp },
             33w0x100000000);
        flow_hash = flow_hash ^ params.seed;
        flow_hash = (flow_hash ^ (flow_hash >> 16)) * HASH_MULTIPLIER_1;
        flow_hash = (flow_hash ^ (flow_hash >> 13)) * HASH_MULTIPLIER_2;
        flow_hash = flow_hash ^ (flow_hash >> 16);
    }

    @hidden
    action choose_bucket() {
        bucket = (bit<16>)(((bit<48>)flow_hash * (bit<48>)params.size) >> 32);
    }

    @hidden
    action note_member() {
        member_hint.write(HINT_INDEX(meta.group_id, bucket), meta.member_port);
    }

    @hidden
    action forget_flowlet() {
        flowlet.write((bit<32>)((flow_hash * HASH_MULTIPLIER_3)[31:18]), 0);
    }

    @brief("Packets and bytes of each bucket.")
    direct_counter(CounterType.packets_and_bytes) group_bucket_counter;

    @brief("The bucket's member is next hop `nexthop_id`.")
    action bucket_nexthop(bit<32> nexthop_id) {
        meta.nexthop_id = nexthop_id;
    }

    @brief("The bucket's member is next hop `nexthop_id`, which leaves by `port`; the group watches it.")
    action bucket_member(bit<32> nexthop_id, port_t port) {
        meta.nexthop_id = nexthop_id;
        meta.member_port = port;
    }

    @brief("Buckets of each group; a member's weight is its number of buckets.")
    table group_bucket {
        key = {
            meta.group_id: exact @name("group_id");
            bucket:        exact @name("bucket");
        }
        actions = { bucket_nexthop; bucket_member; @defaultonly no_group; }
        const default_action = no_group();
        counters = group_bucket_counter;
        size = 65536;
    }

    apply {
        if (group.apply().hit) {
            hash_flow();
            if (params.mode == ARS_FIXED || params.size == 0) {
                choose_bucket();
            } else {
                ars.apply(flow_hash, params, meta, std, bucket);
            }
            group_bucket.apply();
            if (meta.member_port != 0) {
                if (params.mode != ARS_FIXED) {
                    note_member();
                }
                alive.apply(meta.member_port, meta, params.path_age, std,
                            dead, lost, gray, path_band);
                if (dead == 1 || lost == 1 || (gray == 1 && params.gray_is_dead == 1)) {
                    if (params.mode != ARS_FIXED) {
                        forget_flowlet();
                    }
                    failover.apply(flow_hash, params, dead, lost, hdr, meta, std);
                }
            }
        }
    }
}

#endif
