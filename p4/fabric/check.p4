// Check: may this packet come in here at all?
//
// Reads: ingress port, parser and checksum errors, VLAN tag.
// Decides: drop with reason port_off, parser, ip_options, checksum or vlan.
// Writes: the port's role, VRF and LA domain.
//
// Packets that the controller submits come in by the CPU port, which routes in VRF 0 unless
// `port_config` has an entry for it.

#ifndef FABRIC_CHECK_P4
#define FABRIC_CHECK_P4

control Check(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @hidden
    action drop(drop_reason_t reason) {
        meta.verdict = VERDICT_DROP;
        meta.drop_reason = reason;
    }

    @brief("Port faces a host: packets route in `vrf` and are counted against LA domain `la`.")
    action host_port(bit<16> vrf, bit<32> la) {
        meta.role = ROLE_HOST;
        meta.vrf = vrf;
        meta.ingress_la = la;
    }

    @brief("Port faces another switch: packets route in `vrf` and are transit for locality.")
    action fabric_port(bit<16> vrf) {
        meta.role = ROLE_FABRIC;
        meta.vrf = vrf;
    }

    @brief("Port takes no packets.")
    action port_off() {
        meta.role = ROLE_OFF;
    }

    @brief("What each port is for.")
    table port_config {
        key = { std.ingress_port: exact @name("ingress_port"); }
        actions = { host_port; fabric_port; port_off; }
        const default_action = port_off();
        size = 512;
    }

    apply {
        if (!port_config.apply().hit) {
            if (std.ingress_port == CPU_PORT) {
                meta.role = ROLE_CPU;
            }
        }
        if (meta.role == ROLE_OFF) {
            drop(DROP_PORT_OFF);
        } else if (std.parser_error != error.NoError) {
            drop(DROP_PARSER);
        } else if (hdr.ipv4.isValid() && (hdr.ipv4.version != 4 || hdr.ipv4.total_len < 20)) {
            drop(DROP_PARSER);
        } else if (hdr.ipv6.isValid() && hdr.ipv6.version != 6) {
            drop(DROP_PARSER);
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ihl != 5) {
            drop(DROP_IP_OPTIONS);
        } else if (std.checksum_error == 1) {
            drop(DROP_CHECKSUM);
        } else if (hdr.vlan.isValid() && hdr.vlan.vid != VID_PRIORITY) {
            drop(DROP_VLAN);
        }
    }
}

#endif
