#!/usr/bin/env python3
"""A lock client for lockchaos that needs only the standard library.

The lock is that of the Redis documentation for one master: SET key owner NX PX
lease, released by compare-and-delete. It waits by polling and has no fencing
tokens. Protocol: docs/reference/protocol.md. Run it with

    chaos run --scenario gc-pause --lock "exec:python3 examples/client.py" ...
"""
import json
import socket
import sys
import time

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"


class Redis:
    """One connection, opened on demand, closed after an error."""

    def __init__(self, endpoints):
        host, port = endpoints["addrs"][0].rsplit(":", 1)
        self.server = (host, int(port))
        self.source = (endpoints["source"], 0) if endpoints.get("source") else None
        self.password = endpoints.get("password")  # of every server of the run
        self.conn = None

    def call(self, *words):
        try:
            if self.conn is None:
                self.conn = socket.create_connection(self.server, 2, self.source)  # faults identify us by source
                self.file = self.conn.makefile("rb")
                if self.password:
                    self.send("AUTH", self.password)
                    self.reply()
            self.send(*words)
            return self.reply()
        except OSError:
            self.conn = None  # replies still on this connection are lost
            raise

    def send(self, *words):
        words = [str(w).encode() for w in words]
        self.conn.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("connection closed by the server")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            if rest.startswith(b"READONLY"):
                self.conn = None  # the server is a replica now: the address leads to the new master
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        return int(rest) if kind == b":" else rest


def acquire(redis, request):
    lease, deadline = request.get("lease_ms", 0) or 10_000, time.monotonic() + request.get("wait_ms", 0) / 1000
    while True:
        start = time.monotonic_ns()  # before the server starts the lease
        if redis.call("SET", request["key"], request["owner"], "NX", "PX", int(lease)) is not None:
            now = time.monotonic_ns()
            valid = lease - (now - start) / 1e6
            if valid > 0:
                return {"type": "ok", "count": 1, "valid_ms": valid, "mono_ns": now}
            script(redis, RELEASE, request)  # the reply came when the lease was over
        if request["op"] == "try" or time.monotonic() >= deadline:
            return {"type": "fail", "code": "held", "error": "held by another owner"}
        time.sleep(0.01)


def script(redis, text, request, *more):
    start = time.monotonic_ns()
    if redis.call("EVAL", text, 1, request["key"], request["owner"], *more) == 0:
        return {"type": "fail", "code": "not-held", "error": "not held by this owner"}
    now = time.monotonic_ns()
    return {"type": "ok", **({"valid_ms": more[0] - (now - start) / 1e6, "mono_ns": now} if more else {})}


def handle(redis, request):
    if request.get("mode"):
        return {"type": "fail", "code": "unknown-op", "error": "this lock has no modes"}
    if request["op"] in ("acquire", "try"):
        return acquire(redis, request)
    if request["op"] == "renew":
        return script(redis, RENEW, request, int(request.get("lease_ms", 0) or 10_000))
    if request["op"] == "release":
        return script(redis, RELEASE, request)
    if request["op"] == "work":
        time.sleep(request.get("ms", 0) / 1000)  # the critical section, in this process
        return {"type": "ok"}
    return {"type": "fail", "code": "unknown-op", "error": "unknown op " + request["op"]}


redis = None
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "init":
        redis, reply = Redis(request["setup"]["endpoints"]), {"type": "ok", "can": ["try", "renew"]}
    elif request["op"] == "close":
        reply = {"type": "ok"}
    else:
        try:
            reply = handle(redis, request)
        except ConnectionRefusedError as e:  # nothing was sent: certainly no effect
            reply = {"type": "fail", "code": "refused", "error": str(e)}
        except (OSError, RuntimeError) as e:  # sent: effect unknown
            reply = {"type": "info", "code": "unknown", "error": str(e)}
    print(json.dumps({"id": request["id"], **reply}), flush=True)
    if request["op"] == "close":
        break
