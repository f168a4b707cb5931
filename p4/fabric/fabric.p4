// The fabric switch: one program for every tier, on v1model.
//
// What a switch is (leaf, spine, core) follows from its table entries alone. See
// docs/reference-pipeline.md for tables, reasons and counters.

#include <core.p4>
#include <v1model.p4>

#include "constants.p4"
#include "headers.p4"
#include "metadata.p4"
#include "counters.p4"
#include "registers.p4"
#include "parser.p4"
#include "verify_checksum.p4"
#include "update_checksum.p4"
#include "check.p4"
#include "int_recognise.p4"
#include "punt.p4"
#include "classify.p4"
#include "station.p4"
#include "route.p4"
#include "domain.p4"
#include "alive.p4"
#include "place.p4"
#include "measure.p4"
#include "reckon.p4"
#include "quality.p4"
#include "ars.p4"
#include "failover.p4"
#include "spread.p4"
#include "nexthop.p4"
#include "filter.p4"
#include "locality.p4"
#include "int_watch.p4"
#include "int_drops.p4"
#include "hear.p4"
#include "speak.p4"
#include "probe.p4"
#include "ingress.p4"
#include "ecn.p4"
#include "int_source.p4"
#include "int_about.p4"
#include "int_push.p4"
#include "int_strip.p4"
#include "int_hop.p4"
#include "int_events.p4"
#include "int_report.p4"
#include "rewrite.p4"
#include "egress.p4"
#include "deparser.p4"

@pkginfo(name="fabric", version="1")
V1Switch(FabricParser(), FabricVerifyChecksum(), FabricIngress(), FabricEgress(),
         FabricUpdateChecksum(), FabricDeparser()) main;
