"""Runs one fabric in Mininet on behalf of Meridian's `lab` crate.

Standard input carries lines of JSON: the plan, then requests. Standard output carries
lines of JSON: events, then one answer per request. End of input, SIGTERM or SIGINT
stop the fabric. Uses only the standard library and Mininet; runs as root.

    runner.py              run the fabric whose plan comes first on standard input
    runner.py --sweep TAG  remove what a killed run with this tag left behind

Everything that belongs to a run can be found by its tag: processes by their
environment, interfaces by the beginning of their names, files by their folder.
"""
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

MARK = "MERIDIAN_MININET"
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 3
LOG_TAIL_BYTES = 4000
# A child dies with this process, even if this one is killed outright.
DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]


class Failed(Exception):
    """Bring-up failed; becomes the event `failed` with these fields."""

    def __init__(self, kind, **fields):
        super().__init__(kind)
        self.fields = dict(fields, event="failed", kind=kind)


class Stop(BaseException):
    """End of input or a signal."""


class Wire:
    """The protocol's output; Mininet's own printing must not get into it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def send(self, **message):
        with self.lock:
            try:
                self.out.write(json.dumps(message) + "\n")
                self.out.flush()
            except (OSError, ValueError):
                pass  # nobody is listening any more; end of input will follow


def folder_of(tag):
    return os.path.join("/run/meridian", "mininet-" + tag)


def hold(tag):
    """Holds the tag for the life of this process; leaves no file behind."""
    name = "\0meridian-mininet-" + tag
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(name)
        lock.listen(1)
    except OSError:
        pid = 0
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.connect(name)
                credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                pid = struct.unpack("3i", credentials)[0]
        except OSError:
            pass
        raise Failed("busy", pid=pid) from None
    return lock


def marked_processes(tag):
    wanted = (MARK + "=" + tag).encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % entry, "rb") as environ:
                if wanted in environ.read().split(b"\0"):
                    yield int(entry)
        except OSError:
            pass  # it ended while we looked


def interfaces(tag):
    return [name for name in os.listdir("/sys/class/net") if name.startswith(tag + "-")]


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def sweep(tag):
    """Removes all processes, interfaces and files of a tag."""
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while time.monotonic() < deadline:
        running = list(marked_processes(tag))
        for pid in running:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        reap()
        if not running:
            break
        time.sleep(0.02)
    while time.monotonic() < deadline:
        left = interfaces(tag)
        if not left:
            break
        # One of a pair takes the other with it, hence -force.
        script = "".join("link delete dev %s\n" % name for name in left)
        subprocess.run(["ip", "-force", "-batch", "-"], input=script, text=True, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder_of(tag), ignore_errors=True)


def tail(path):
    try:
        with open(path, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - LOG_TAIL_BYTES))
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def run_setup(node, commands, prefix=()):
    """Starts a node's set-up commands; `finish_setup` waits for them."""
    script = tempfile.TemporaryFile("w+")
    # `set -x` names the command that failed.
    script.write("set -x\n" + "\n".join(commands) + "\n")
    script.flush()
    script.seek(0)
    output = tempfile.TemporaryFile("w+")
    shell = subprocess.Popen([*prefix, "sh", "-e"], stdin=script, stdout=output,
                             stderr=subprocess.STDOUT)
    return node, shell, output


def finish_setup(started):
    node, shell, output = started
    if shell.wait() != 0:
        output.seek(0)
        raise Failed("setup", node=node, output="\n".join(output.read().splitlines()[-2:]))


class Fabric:
    """A running fabric."""

    def __init__(self, plan, wire, mininet):
        self.plan, self.wire = plan, wire
        self.stopping = False
        self.switches, self.tasks = {}, {}
        self.logs = plan.get("log_folder") or folder_of(plan["tag"])
        os.makedirs(self.logs, mode=0o700, exist_ok=True)
        self.net = mininet(self)

    def progress(self, step, done, total):
        self.wire.send(event="progress", step=step, done=done, total=total)

    def build(self):
        plan, net = self.plan, self.net
        nodes = plan["hosts"] + plan["switches"]
        for done, node in enumerate(nodes):
            self.progress("nodes", done, len(nodes))
            if "program" in node:
                # The name alone may hold no number to make a datapath id of.
                net.addSwitch(node["name"], dpid="%x" % node["device_id"], plan=node)
            else:
                net.addHost(node["name"], plan=node)
        for done, link in enumerate(plan["links"]):
            self.progress("links", done, len(plan["links"]))
            ends = [net.get(end["node"]) for end in link["ends"]]
            names = [end["interface"] for end in link["ends"]]
            try:
                net.addLink(*ends, intfName1=names[0], intfName2=names[1])
            except Exception as error:  # Mininet raises nothing narrower
                raise Failed("setup", node=link["ends"][0]["node"], output=str(error)) from error
        self.progress("addresses", 0, len(nodes))
        started = [run_setup(node["name"], node["setup"], self.enter(node)) for node in nodes]
        for done, setup in enumerate(started):
            finish_setup(setup)
            self.progress("addresses", done + 1, len(nodes))
        net.built = True
        net.start()
        self.wait_for_switches()

    def enter(self, node):
        """The command that enters a node's network namespace."""
        return ["mnexec", "-a", str(self.net.get(node["name"]).pid)]

    def start_switch(self, node):
        path = os.path.join(self.logs, node["name"] + ".log")
        with open(path, "wb") as log:
            process = subprocess.Popen(
                [*DIE_WITH_PARENT, node["program"], *node["arguments"]], cwd=self.logs,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.switches[node["name"]] = process
        threading.Thread(target=self.watch, args=(node, process, path), daemon=True).start()

    def watch(self, node, process, path):
        code = process.wait()
        if not self.stopping:
            self.wire.send(event="switch_exited", switch=node["name"], code=code, log=tail(path))

    def wait_for_switches(self):
        waiting = list(self.plan["switches"])
        total = len(waiting)
        deadline = time.monotonic() + START_TIMEOUT_S
        while waiting:
            self.progress("switches", total - len(waiting), total)
            for node in list(waiting):
                process, port = self.switches[node["name"]], node["grpc_port"]
                path = os.path.join(self.logs, node["name"] + ".log")
                if process.poll() is not None:
                    self.stopping = True
                    raise Failed("switch", switch=node["name"], code=process.returncode,
                                 program=node["program"], log=tail(path))
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    waiting.remove(node)
                except OSError:
                    pass
            if waiting and time.monotonic() > deadline:
                node = waiting[0]
                log = tail(os.path.join(self.logs, node["name"] + ".log"))
                raise Failed("silent", switch=node["name"], port=node["grpc_port"], log=log)
            time.sleep(0.05)
        self.progress("switches", total, total)

    def execute(self, request):
        """Runs a host's command; answers from a thread of its own."""
        node = {"name": request["host"]}
        if node["name"] not in self.net or self.net.get(node["name"]) not in self.net.hosts:
            self.wire.send(id=request["id"], error="no such host")
            return
        process = subprocess.Popen(
            [*self.enter(node), *DIE_WITH_PARENT, "sh", "-c", request["command"]],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
        self.tasks[request["id"]] = process

        def collect():
            timed_out = False
            try:
                out, err = process.communicate(timeout=request["timeout_ms"] / 1000)
            except subprocess.TimeoutExpired:
                timed_out = True
                self.kill_group(process, signal.SIGKILL)
                out, err = process.communicate()
            self.tasks.pop(request["id"], None)
            self.wire.send(id=request["id"], code=process.returncode, timed_out=timed_out,
                           out=out.decode("utf-8", "replace"), err=err.decode("utf-8", "replace"))

        threading.Thread(target=collect, daemon=True).start()

    def set_link(self, request):
        """Both ends lose or get carrier, as with a pulled or plugged cable."""
        state = "up" if request["up"] else "down"
        for end in self.plan["links"][request["link"]]["ends"]:
            if any(switch["name"] == end["node"] for switch in self.plan["switches"]):
                subprocess.run(["ip", "link", "set", "dev", end["interface"], state], check=False)
        self.wire.send(id=request["id"], code=0)

    @staticmethod
    def kill_group(process, signal_number):
        try:
            os.killpg(process.pid, signal_number)
        except ProcessLookupError:
            pass

    def stop(self):
        self.stopping = True
        for process in [*self.tasks.values(), *self.switches.values()]:
            self.kill_group(process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            if all(process.poll() is not None for process in self.switches.values()):
                break
            time.sleep(0.02)


def network(fabric):
    """An empty Mininet network whose nodes are made from a plan."""
    try:
        from mininet.link import Intf, Link
        from mininet.net import Mininet
        from mininet.node import Host, Switch
    except ImportError as error:
        raise Failed("import", message=str(error), python=sys.executable) from error

    class PlainInterface(Intf):
        def config(self, **_):
            return {}  # the node's set-up commands do this

    class RailHost(Host):
        def config(self, **_):
            return {}

    class P4Switch(Switch):
        def __init__(self, name, plan, **params):
            Switch.__init__(self, name, **dict(params, inNamespace=False))
            self.plan = plan

        def start(self, _controllers):
            fabric.start_switch(self.plan)

    # Mininet would raise kernel limits for the whole machine and leave them so.
    Mininet.inited = True
    return Mininet(topo=None, switch=P4Switch, host=RailHost, controller=None, link=Link,
                   intf=PlainInterface, build=False)


def serve(wire, requests, fabric):
    fabric.build()
    wire.send(event="ready", logs=fabric.logs)
    while True:
        request = json.loads(next(requests))
        if "host" in request:
            fabric.execute(request)
        elif "link" in request:
            fabric.set_link(request)


def input_lines():
    """Lines of standard input. End of input becomes SIGTERM, so that it stops a fabric
    that is still being built."""
    read, write = os.pipe()

    def copy():
        while True:
            data = os.read(0, 1 << 16)
            if not data:
                os.kill(os.getpid(), signal.SIGTERM)
                return
            while data:
                data = data[os.write(write, data):]

    threading.Thread(target=copy, daemon=True).start()
    return os.fdopen(read, encoding="utf-8")


def stop_on(signal_number, _frame):
    # Once is enough: what follows must not be interrupted.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise Stop(signal_number)


def main():
    if sys.argv[1:2] == ["--sweep"]:
        with hold(sys.argv[2]):
            sweep(sys.argv[2])
        return 0
    wire, tag, fabric, lock = Wire(), None, None, None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop_on)
    code = 0
    try:
        requests = input_lines()
        plan = json.loads(next(requests))
        lock = hold(plan["tag"])
        tag = plan["tag"]
        sweep(tag)
        os.environ[MARK] = tag
        fabric = Fabric(plan, wire, network)
        serve(wire, requests, fabric)
    except Stop:
        pass
    except Failed as failure:
        wire.send(**failure.fields)
        code = 1
    except Exception as error:  # whatever it is, the other side must hear of it
        wire.send(event="failed", kind="runner", message="%s: %s" % (type(error).__name__, error))
        code = 1
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if fabric:
        fabric.stop()
    if tag:
        sweep(tag)
    if lock:
        lock.close()
    wire.send(event="stopped")
    # Without the interpreter's own ending, which would wait for Mininet's shells.
    os._exit(code)


main()
