// ECN: tell senders of congestion before the queue is full.
//
// Reads: queue depth q when the packet left the queue (packets, without itself), egress port, queue, ECN
// field.
// Decides, by the port's and queue's profile: q <= kmin never; q > kmax always; between them with
// probability pmax * (q - kmin) / (kmax - kmin). The product form needs no division: with r drawn evenly
// from 0 to 65534 and pmax scaled to 65535, r * (kmax - kmin) < pmax * (q - kmin).
// Writes: ECT(0) and ECT(1) become CE. Not-ECT is left alone, or dropped by the same law when the profile
// says so; the drop counts under reason ecn. ecn_hit tells int_events.p4 of either. Packets that were not routed are left alone.

#ifndef FABRIC_ECN_P4
#define FABRIC_ECN_P4

struct ecn_profile_t {
    bit<19> kmin;
    bit<19> kmax;
    bit<16> pmax;
    bit<1>  drop_not_ect;
}

const bit<19> NEVER_DEEPER = 0x7ffff;   // no queue is deeper: without a profile the law never marks

control Ecn(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    ecn_profile_t profile = { NEVER_DEEPER, NEVER_DEEPER, 0, 0 };
    bit<1> congested = 0;
    bit<2> ecn = 0;

    @brief("Routed packets marked CE here; index: egress_port << 3 | queue.")
    counter(PORT_QUEUES, CounterType.packets_and_bytes) queue_marks;

    @brief("Mark between `kmin` and `kmax` packets with probability up to `pmax` / 65535, above always.")
    @description("drop_not_ect: Not-ECT packets, which cannot be marked, are dropped instead.")
    action ecn_mark(bit<19> kmin, bit<19> kmax, bit<16> pmax, bit<1> drop_not_ect) {
        profile = { kmin, kmax, pmax, drop_not_ect };
    }

    @brief("ECN marking profile of each port and queue; no entry, no marks.")
    table ecn_profile {
        key = {
            std.egress_port: exact @name("egress_port");
            meta.queue:      exact @name("queue");
        }
        actions = { ecn_mark; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    @hidden
    action mark_v4() {
        hdr.ipv4.ecn = ECN_CE;
    }

    @hidden
    action mark_v6() {
        hdr.ipv6.ecn = ECN_CE;
    }

    apply {
        ecn_profile.apply();

        // The marking law.
        bit<19> q = std.deq_qdepth;
        if (q > profile.kmin) {
            if (q > profile.kmax) {
                congested = 1;
            } else {
                bit<16> r;
                random(r, 0, 65534);
                if ((bit<40>)r * (bit<40>)(profile.kmax - profile.kmin)
                        < (bit<40>)profile.pmax * (bit<40>)(q - profile.kmin)) {
                    congested = 1;
                }
            }
        }

        if (congested == 1) {
            if (hdr.ipv4.isValid()) {
                ecn = hdr.ipv4.ecn;
            } else {
                ecn = hdr.ipv6.ecn;
            }
            if (ecn == ECN_NOT_ECT) {
                if (profile.drop_not_ect == 1) {
                    meta.verdict = VERDICT_DROP;
                    meta.drop_reason = DROP_ECN;
                    meta.ecn_hit = 1;
                    drops.count((bit<32>)(std.ingress_port ++ DROP_ECN));
                    mark_to_drop(std);
                }
            } else if (ecn != ECN_CE) {
                if (hdr.ipv4.isValid()) {
                    mark_v4();
                } else {
                    mark_v6();
                }
                meta.ecn_hit = 1;
                queue_marks.count((bit<32>)(std.egress_port ++ meta.queue));
            }
        }
    }
}

#endif
