// INT, recognise: is what looks like INT really INT?
//
// Reads: NPT of the shim, DSCP, UDP destination port, role of the port.
// Decides: `int_indicator` says by which DSCP or UDP port packets of this domain carry INT. Without an
// entry the bytes are payload like any other. A host must not forge telemetry: what comes from it with
// the indicator and the shape of INT is dropped with reason int.
// Writes: int_state; the flow's fields as they were before the source changed the packet, so that a
// measured packet gets the class, the path and the filter of its flow.

#ifndef FABRIC_INT_RECOGNISE_P4
#define FABRIC_INT_RECOGNISE_P4

control IntRecognise(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    @brief("The packet carries INT.")
    action carries_int() {
        meta.int_state = INT_CARRIED;
    }

    @brief("What tells that a packet carries INT; asked only about packets that have its shape.")
    @description("npt 0: by DSCP; 1 and 2: by UDP destination port.")
    table int_indicator {
        key = {
            hdr.int_shim.npt: exact   @name("npt");
            meta.dscp:        ternary @name("dscp");
            meta.dst_port:    ternary @name("udp_dst_port");
        }
        actions = { carries_int; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    @hidden
    action behind_dscp() {
        meta.dscp = hdr.int_shim.field[7:2];
    }

    @hidden
    action behind_port() {
        meta.dst_port = hdr.int_shim.field;
        meta.trap_port = hdr.int_shim.field;
    }

    @hidden
    action behind_protocol() {
        meta.ip_protocol = hdr.int_shim.field[7:0];
        meta.src_port = 0;
        meta.dst_port = 0;
    }

    @hidden
    action inner_ports() {
        meta.src_port = meta.inner_src_port;
        meta.dst_port = meta.inner_dst_port;
    }

    @hidden
    action rocev2() {
        meta.dest_qp = hdr.bth.dest_qp;
    }

    apply {
        if (hdr.udp.isValid() || hdr.int_shim.npt == INT_NPT_IN_PLACE) {
            int_indicator.apply();
        }
        if (meta.int_state == INT_CARRIED) {
            if (meta.role == ROLE_HOST) {
                meta.verdict = VERDICT_DROP;
                meta.drop_reason = DROP_INT;
            }
            if (hdr.int_shim.npt == INT_NPT_IN_PLACE) {
                behind_dscp();
            } else if (hdr.int_shim.npt == INT_NPT_PORT) {
                behind_port();
            } else {
                behind_protocol();
                if (meta.ip_protocol == PROTO_TCP || meta.ip_protocol == PROTO_UDP) {
                    inner_ports();
                }
                meta.trap_port = meta.dst_port;
            }
            meta.flow_port = meta.src_port;
            if (hdr.bth.isValid()) {
                rocev2();
                meta.flow_port = 0;
            }
        }
    }
}

#endif
