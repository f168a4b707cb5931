// Quality: how good is the member of a bucket for this packet?
//
// Reads: the port that the bucket led to when it was last used; whether that port may be used (alive.p4), how
// congested it is (reckon.p4), and how congested the path beyond it.
// Decides: bands of congestion, 0 is idle; QUALITY_DEAD for a member that is dead or cut off, or gray where
// the group leaves gray links out. A bucket never used before is as good as idle, so that it gets tried.
// Writes: nothing.
//
// The port of a bucket that was used before is remembered as a hint; the truth is `group_bucket`, which
// is asked once the choice is made.

#ifndef FABRIC_QUALITY_P4
#define FABRIC_QUALITY_P4

struct group_t {
    bit<16>    size;
    bit<32>    seed;
    ars_mode_t mode;
    bit<32>    idle;           // us
    bit<5>     queue_shift;
    bit<5>     use_shift;
    bit<32>    path_age;       // us; 0: paths beyond the neighbour are not looked at
    bit<1>     gray_is_dead;
    port_t     first_port;
    bit<128>   ports;          // bit n: first_port + n is a member
}

// Port of a bucket, by group and bucket.
register<port_t>(MEMBER_HINTS) member_hint;
#define HINT_INDEX(group, bucket) ((bit<32>)((((group) * HASH_MULTIPLIER_3) + (bit<32>)(bucket))[13:0]))

control Quality(in bit<16> bucket, inout group_t group, inout metadata_t meta, inout standard_metadata_t std,
                out quality_t quality) {
    Alive() alive;
    Reckon() reckon;
    port_t port = 0;
    bit<1> dead = 0;
    bit<1> lost = 0;
    bit<1> gray = 0;
    quality_t path_band = 0;

    @hidden
    action recall() {
        member_hint.read(port, HINT_INDEX(meta.group_id, bucket));
    }

    @hidden
    action sum() {
        quality = quality + path_band + (gray == 1 ? QUALITY_GRAY : 0);
        quality = dead == 1 || lost == 1 || (gray == 1 && group.gray_is_dead == 1)
            ? QUALITY_DEAD : quality;
    }

    apply {
        quality = 0;
        recall();
        if (port != 0) {
            alive.apply(port, meta, group.path_age, std, dead, lost, gray, path_band);
            reckon.apply(port, meta.queue, group.queue_shift, group.use_shift, quality, std);
            sum();
        }
    }
}

#endif
