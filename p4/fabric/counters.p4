// Counters and meters that more than one control uses.
//
// Table-bound and single-user counters are declared beside their control: port_rx (ingress.p4),
// locality (locality.p4), port_tx, queue_tx (egress.p4), queue_marks (ecn.p4), and the direct ones.

#ifndef FABRIC_COUNTERS_P4
#define FABRIC_COUNTERS_P4

@brief("Packets dropped, by ingress port and reason; index: ingress_port << 5 | reason.")
counter(PORT_DROPS, CounterType.packets_and_bytes) drops;

@brief("Limits reports; cell 0: path, 1: drops that ingress finds, 2: queue and ECN. Red is not sent.")
meter(REPORT_KINDS, MeterType.packets) int_report_meter;

#endif
