"""p4runtime-shell against a switch: pushes the fabric pipeline, writes, reads.

Usage: shell_client.py ADDRESS P4INFO JSON
"""

import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeException, P4RuntimeWriteException

address, p4info, device_config = sys.argv[1:]

sh.setup(
    device_id=1,
    grpc_addr=address,
    election_id=(0, 1),
    config=sh.FwdPipeConfig(p4info, device_config),
)

hop = sh.TableEntry("nexthop")(action="forward")
hop.match["nexthop_id"] = "7"
hop.action["port"] = "3"
hop.action["src_mac"] = "02:00:00:00:00:01"
hop.action["dst_mac"] = "02:00:00:00:00:02"
hop.insert()

route = sh.TableEntry("route_v4")(action="route_nexthop")
route.match["vrf"] = "1"
route.match["dst_addr"] = "10.1.0.0/16"
route.action["nexthop_id"] = "7"
route.insert()

rule = sh.TableEntry("acl")(action="deny")
rule.match["ip_protocol"] = "6&&&0xff"
rule.priority = 10
rule.insert()

# Inserted twice: the switch must say that it exists.
try:
    route.insert()
except P4RuntimeWriteException as error:
    assert "ALREADY_EXISTS" in str(error), error
else:
    raise SystemExit("a second insert of the same entry was accepted")

routes = list(sh.TableEntry("route_v4").read())
assert len(routes) == 1, routes
assert routes[0].match["dst_addr"].lpm.prefix_len == 16, routes
assert routes[0].action.action_name.endswith("route_nexthop"), routes
assert len(list(sh.TableEntry("acl").read())) == 1

route.action["nexthop_id"] = "8"
route.modify()
assert next(iter(sh.TableEntry("route_v4").read())).action["nexthop_id"].value == b"\x08"

cells = list(sh.CounterEntry("port_rx").read())
assert len(cells) == 512, len(cells)

group = sh.MulticastGroupEntry(5)
group.add(1, 1).add(2, 1)
group.insert()
assert len(list(sh.MulticastGroupEntry().read())) == 1
group.delete()

session = sh.CloneSessionEntry(9)
session.add(1, 1)
session.insert()
session.delete()

packet = sh.PacketOut(b"\x00" * 60, egress_port="1", submit_to_ingress="0", pad="0")
packet.send()

for entry in (route, hop, rule):
    entry.delete()
assert not list(sh.TableEntry("route_v4").read())
try:
    route.delete()
except P4RuntimeWriteException as error:
    assert "NOT_FOUND" in str(error), error
else:
    raise SystemExit("an entry was deleted twice")

sh.teardown()
print("p4runtime-shell: ok")
