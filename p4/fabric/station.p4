// Station: is the packet sent to this switch to be routed?
//
// Reads: destination MAC, addresses.
// Decides: drop with reason not_routed (group MAC, not IP), not_station (someone else's MAC) or martian
// (multicast, reserved or loopback, RFC 1812 section 5.3.7, RFC 4291 2.5.3, 2.7).

#ifndef FABRIC_STATION_P4
#define FABRIC_STATION_P4

control Station(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @hidden
    action drop(drop_reason_t reason) {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = reason;
    }

    @brief("The packet is for this switch: route it.")
    action accept() {}

    action not_station() {
        drop(DROP_NOT_STATION);
    }

    @brief("MAC addresses of this switch; what is sent to another is dropped.")
    table station {
        key = { hdr.ethernet.dst_addr: exact @name("dst_mac"); }
        actions = { accept; @defaultonly not_station; }
        const default_action = not_station();
        size = 64;
    }

    apply {
        if (hdr.ethernet.dst_addr & MAC_GROUP_BIT != 0) {
            drop(DROP_NOT_ROUTED);
        } else if (!hdr.ipv4.isValid() && !hdr.ipv6.isValid()) {
            drop(DROP_NOT_ROUTED);
        } else if (hdr.ipv4.isValid()
                   && (hdr.ipv4.src_addr[31:29] == 7 || hdr.ipv4.dst_addr[31:29] == 7   // 224.0.0.0/3
                       || hdr.ipv4.src_addr[31:24] == 127 || hdr.ipv4.dst_addr[31:24] == 127)) {
            drop(DROP_MARTIAN);
        } else if (hdr.ipv6.isValid()
                   && (hdr.ipv6.src_addr[127:120] == 0xff || hdr.ipv6.dst_addr[127:120] == 0xff
                       || hdr.ipv6.src_addr[127:1] == 0 || hdr.ipv6.dst_addr[127:1] == 0)) { // ::, ::1
            drop(DROP_MARTIAN);
        } else {
            station.apply();
        }
    }
}

#endif
