// Failover: which other member takes over from one that is dead?
//
// Reads: the group's ports, ports known to be dead or cut off from the LA domain, the flow's hash.
// Decides: one of the remaining ports, each as likely, the same for all packets of a flow; drop with
// reason no_live_member when none is left. A member that is only gray stays when there is no other.
// Writes: what is dead or lost, so that no other flow's second choice falls on it.
//
// The k-th of n members left is found without a loop: c1, c2, ... hold the numbers of ones in every 2,
// 4, ... bits (counted in parallel), and the search halves the field at each step.

#ifndef FABRIC_FAILOVER_P4
#define FABRIC_FAILOVER_P4

const bit<128> EVERY_1  = 0x55555555555555555555555555555555;
const bit<128> EVERY_2  = 0x33333333333333333333333333333333;
const bit<128> EVERY_4  = 0x0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f;
const bit<128> EVERY_8  = 0x00ff00ff00ff00ff00ff00ff00ff00ff;
const bit<128> EVERY_16 = 0x0000ffff0000ffff0000ffff0000ffff;
const bit<128> EVERY_32 = 0x00000000ffffffff00000000ffffffff;

// If the lower half of what is left has no more than k ones, go on in the upper half.
#define HALVE(counts, width, ones) \
    count_lower((bit<8>)(counts >> at) & ones); \
    if (k >= count) { \
        take_upper(width); \
    }

control Failover(in bit<32> flow_hash, inout group_t group, in bit<1> dead, in bit<1> lost,
                 inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    Alive() alive;
    bit<128> left = 0;
    bit<128> c1 = 0;
    bit<128> c2 = 0;
    bit<128> c4 = 0;
    bit<128> c8 = 0;
    bit<128> c16 = 0;
    bit<128> c32 = 0;
    bit<8> k = 0;
    bit<8> at = 0;
    bit<8> count = 0;
    bit<1> still_dead = 0;
    bit<1> still_lost = 0;
    bit<1> gray = 0;
    quality_t path_band = 0;

    @hidden
    action exclude(bit<1> is_dead, bit<1> is_lost) {
        port_set_t known;
        dead_ports.read(known, SET_INDEX(group.first_port));
        known = is_dead == 1 ? known | SET_OF(meta.member_port) : known;
        dead_ports.write(SET_INDEX(group.first_port), known);
        known = (known | SET_OF(meta.member_port)) >> group.first_port[7:0];
        left = group.ports & ~known[127:0];
        lost_paths.read(known, LOST_INDEX(meta.dst_la, group.first_port));
        known = is_lost == 1 ? known | SET_OF(meta.member_port) : known;
        lost_paths.write(LOST_INDEX(meta.dst_la, group.first_port), known);
        known = known >> group.first_port[7:0];
        left = group.path_age == 0 ? left : left & ~known[127:0];
    }

    // Steps of their own, as the compiler would put one's formula into the next again and again.
    @hidden
    action count_2() { c1 = (left & EVERY_1) + ((left >> 1) & EVERY_1); }
    @hidden
    action count_4() { c2 = (c1 & EVERY_2) + ((c1 >> 2) & EVERY_2); }
    @hidden
    action count_8() { c4 = (c2 & EVERY_4) + ((c2 >> 4) & EVERY_4); }
    @hidden
    action count_16() { c8 = (c4 & EVERY_8) + ((c4 >> 8) & EVERY_8); }
    @hidden
    action count_32() { c16 = (c8 & EVERY_16) + ((c8 >> 16) & EVERY_16); }
    @hidden
    action count_64() { c32 = (c16 & EVERY_32) + ((c16 >> 32) & EVERY_32); }

    // Not the bits that chose the bucket: those of a dead member's flows are alike.
    @hidden
    action draw() {
        bit<32> other = (flow_hash ^ (flow_hash >> 15)) * HASH_MULTIPLIER_3;
        bit<8> n = (bit<8>)(c32 + (c32 >> 64));
        k = (bit<8>)(((bit<40>)(other ^ (other >> 16)) * (bit<40>)n) >> 32);
    }

    @hidden
    action count_lower(bit<8> ones) {
        count = ones;
    }

    @hidden
    action take_upper(bit<8> width) {
        at = at + width;
        k = k - count;
    }

    @hidden
    action take() {
        meta.member_port = group.first_port + (port_t)at;
    }

    action no_live_member() {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = DROP_NO_LIVE_MEMBER;
    }

    @brief("The member at the port is next hop `nexthop_id`.")
    action port_nexthop(bit<32> nexthop_id) {
        meta.nexthop_id = nexthop_id;
    }

    @brief("Members of each group by port, to move to when another is dead.")
    table group_port {
        key = {
            meta.group_id:    exact @name("group_id");
            meta.member_port: exact @name("port");
        }
        actions = { port_nexthop; @defaultonly no_live_member; }
        const default_action = no_live_member();
        size = 16384;
    }

    apply {
        exclude(dead, lost);
        if (left != 0) {
            count_2();
            count_4();
            count_8();
            count_16();
            count_32();
            count_64();
            draw();
            HALVE(c32, 64, 0xff)
            HALVE(c16, 32, 0xff)
            HALVE(c8, 16, 0xff)
            HALVE(c4, 8, 0xff)
            HALVE(c2, 4, 0xf)
            HALVE(c1, 2, 0x3)
            HALVE(left, 1, 0x1)
            take();
            alive.apply(meta.member_port, meta, group.path_age, std,
                        still_dead, still_lost, gray, path_band);
            if (still_dead == 1 || still_lost == 1) {
                exclude(still_dead, still_lost);
                no_live_member();
            } else {
                group_port.apply();
            }
        } else if (dead == 1 || lost == 1) {
            no_live_member();
        }
    }
}

#endif
