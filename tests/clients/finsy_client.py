"""finsy against a switch: pushes the fabric pipeline, writes, reads.

Usage: finsy_client.py ADDRESS P4INFO JSON
"""

import asyncio
import sys
from pathlib import Path

import finsy as fy

address, p4info, device_config = sys.argv[1:]


async def main() -> None:
    options = fy.SwitchOptions(
        p4info=Path(p4info), p4blob=Path(device_config), device_id=1
    )
    async with fy.Switch("s1", address, options) as switch:
        await switch.delete_all()

        hop = fy.P4TableEntry(
            "nexthop",
            match=fy.Match(nexthop_id=7),
            action=fy.Action(
                "forward",
                port=3,
                src_mac="02:00:00:00:00:01",
                dst_mac="02:00:00:00:00:02",
            ),
        )
        route = fy.P4TableEntry(
            "route_v4",
            match=fy.Match(vrf=1, dst_addr="10.1.0.0/16"),
            action=fy.Action("route_nexthop", nexthop_id=7),
        )
        rule = fy.P4TableEntry(
            "acl",
            match=fy.Match(ip_protocol=6),
            action=fy.Action("deny"),
            priority=10,
        )
        await switch.insert([hop, route, rule])

        found = [entry async for entry in switch.read(fy.P4TableEntry("route_v4"))]
        assert len(found) == 1, found
        everything = [entry async for entry in switch.read(fy.P4TableEntry())]
        assert len(everything) == 3, everything

        try:
            await switch.insert([route])
        except fy.P4ClientError as error:
            assert error.details[0].canonical_code == fy.GRPCStatusCode.ALREADY_EXISTS
        else:
            raise SystemExit("a second insert of the same entry was accepted")

        cells = [c async for c in switch.read(fy.P4CounterEntry("port_rx"))]
        assert len(cells) == 512, len(cells)

        group = fy.P4MulticastGroupEntry(5, replicas=[1, (2, 1)])
        await switch.insert([group])
        await switch.delete([group])
        await switch.write(
            fy.P4PacketOut(b"\x00" * 60, egress_port=1, submit_to_ingress=0, pad=0)
        )
        await switch.delete_all()
        assert not [entry async for entry in switch.read(fy.P4TableEntry())]
    print("finsy: ok")


asyncio.run(main())
