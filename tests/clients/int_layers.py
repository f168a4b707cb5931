"""Scapy layers for Telemetry Report v2.0 and INT-MD v2.1, written from the specifications alone.

As a program: reads datagrams, one per line in hex, and writes what is in each as a line of JSON.
"""

import json
import sys

from scapy.fields import BitField, ByteField, FlagsField, IntField, ShortField, XShortField
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet

# Bytes of each bit of a bitmap, bit 0 first.
SIZES = [4, 4, 4, 4, 8, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 4]
ROCE = 4791


def bits_of(bitmap):
    return [bit for bit in range(16) if bitmap >> (15 - bit) & 1]


class TelemetryGroup(Packet):
    """Telemetry Report Group Header."""

    name = "TelemetryGroup"
    fields_desc = [
        BitField("version", 2, 4),
        BitField("hw_id", 0, 6),
        BitField("sequence", 0, 22),
        IntField("node_id", 0),
    ]

    def guess_payload_class(self, payload):
        return TelemetryReport


class TelemetryReport(Packet):
    """Individual Report Header, with the contents of RepType 0 and 1."""

    name = "TelemetryReport"
    fields_desc = [
        BitField("rep_type", 1, 4),
        BitField("in_type", 4, 4),
        ByteField("length", 0),
        ByteField("md_length", 0),
        FlagsField("flags", 0, 4, ["I", "F", "Q", "D"]),
        BitField("reserved", 0, 4),
    ]

    def guess_payload_class(self, payload):
        return ReportContents if self.rep_type == 1 else Packet.guess_payload_class(self, payload)


class ReportContents(Packet):
    """Individual Report Main Contents of RepType INT."""

    name = "ReportContents"
    fields_desc = [
        XShortField("md_bits", 0),
        ShortField("domain_id", 0),
        XShortField("ds_md_bits", 0),
        XShortField("ds_md_status", 0),
    ]


class IntShim(Packet):
    """INT shim header over TCP and UDP."""

    name = "IntShim"
    fields_desc = [
        BitField("type", 1, 4),
        BitField("npt", 0, 2),
        BitField("reserved", 0, 2),
        ByteField("length", 3),
        XShortField("field", 0),
    ]


class IntMd(Packet):
    """INT-MD metadata header."""

    name = "IntMd"
    fields_desc = [
        BitField("version", 2, 4),
        BitField("discard", 0, 1),
        BitField("hops_exceeded", 0, 1),
        BitField("mtu_exceeded", 0, 1),
        BitField("reserved", 0, 12),
        BitField("hop_ml", 0, 5),
        ByteField("remaining_hops", 0),
        XShortField("instructions", 0),
        ShortField("domain_id", 0),
        XShortField("ds_instructions", 0),
        XShortField("ds_flags", 0),
    ]


def words(bitmap, data, last_at_end):
    """The words of a bitmap by bit, then what is left. In a stack, bit 15 stands behind what is left."""
    found = {}
    for bit in bits_of(bitmap):
        if bit == 15 and last_at_end:
            continue
        size = SIZES[bit]
        found[str(bit)] = int.from_bytes(data[:size], "big")
        data = data[size:]
    if bitmap & 1 and last_at_end:
        found["15"] = int.from_bytes(data[-4:], "big")
        data = data[:-4]
    return found, data


def stack(data):
    """INT at the front of `data`: fields, hops from the source on, and the rest."""
    shim = IntShim(data[:4])
    md = IntMd(data[4:16])
    end = 4 + 4 * shim.length
    hop = 4 * md.hop_ml
    metadata = data[16:end]
    hops = []
    while hop and len(metadata) >= hop:
        told, own = words(md.instructions, metadata[:hop], True)
        hops.append({"words": told, "ds": own.hex()})
        metadata = metadata[hop:]
    hops.reverse()
    names = ["discard", "hops_exceeded", "mtu_exceeded", "hop_ml", "remaining_hops"]
    names += ["instructions", "domain_id", "ds_instructions", "ds_flags"]
    fields = {name: int(getattr(md, name)) for name in names}
    fields |= {"npt": shim.npt, "field": shim.field, "hops": hops, "source_only": metadata.hex()}
    return fields, data[end:]


def packet(data, int_dscp, int_port):
    """A packet from IP on, that may be cut off and may carry INT."""
    ip = IP(data) if data[0] >> 4 == 4 else IPv6(data)
    v4 = isinstance(ip, IP)
    tos = ip.tos if v4 else ip.tc
    shown = {"src": ip.src, "dst": ip.dst, "dscp": tos >> 2, "ecn": tos & 3}
    protocol = ip.proto if v4 else ip.nh
    rest = data[ip.ihl * 4 if v4 else 40 :]
    if protocol in (6, 17):
        transport = TCP(rest[:20]) if protocol == 6 else UDP(rest[:8])
        ports = [transport.sport, transport.dport]
        payload = rest[20 if protocol == 6 else 8 :]
        if shown["dscp"] == int_dscp or (protocol == 17 and ports[1] == int_port):
            shown["int"], payload = stack(payload)
            if shown["int"]["npt"] == 0:
                shown["dscp"] = shown["int"]["field"] >> 2 & 0x3F
            elif shown["int"]["npt"] == 1:
                ports[1] = shown["int"]["field"]
            else:
                protocol = shown["int"]["field"] & 0xFF
                ports = [int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")]
        shown["ports"] = ports
        if protocol == 17 and ports[1] == ROCE and len(payload) >= 8:
            shown["qp"] = int.from_bytes(payload[5:8], "big")
    shown["protocol"] = protocol
    return shown


def decode(data, int_dscp, int_port):
    """A datagram to a collector."""
    group = TelemetryGroup(data[:8])
    result = {name: int(getattr(group, name)) for name in ["hw_id", "sequence", "node_id"]}
    result["reports"] = []
    data = data[8:]
    while data:
        header = TelemetryReport(data[:4])
        end = len(data) if header.length == 255 else 4 + 4 * header.length
        body, data = data[4:end], data[end:]
        flags = int(header.flags)
        report = {"in_type": header.in_type}
        for name, bit in [("dropped", 8), ("congested", 4), ("tracked", 2), ("intermediate", 1)]:
            report[name] = bool(flags & bit)
        if header.rep_type == 1:
            contents = ReportContents(body[:8])
            told, own = words(contents.md_bits, body[8 : 8 + 4 * header.md_length], False)
            names = ["md_bits", "domain_id", "ds_md_bits", "ds_md_status"]
            report["own"] = {name: int(getattr(contents, name)) for name in names}
            report["own"] |= {"words": told, "ds": own.hex()}
            body = body[8 + 4 * header.md_length :]
        if header.in_type in (4, 5):
            report["packet"] = packet(body, int_dscp, int_port)
        result["reports"].append(report)
    return result


def main():
    int_dscp, int_port = int(sys.argv[1]), int(sys.argv[2])
    for line in sys.stdin:
        print(json.dumps(decode(bytes.fromhex(line), int_dscp, int_port), sort_keys=True))


if __name__ == "__main__":
    main()
