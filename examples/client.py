#!/usr/bin/env python3
"""A lock client for lockchaos, with nothing but the standard library.

The lock is the plain one of the Redis documentation, on one master: SET key
owner NX PX lease, given back by compare-and-delete. It waits by asking again,
and it mints no fencing token. Protocol: docs/protocol.md. Run it with

    chaos run --scenario gc-pause --lock "exec:python3 examples/client.py" ...
"""
import json
import socket
import sys
import time

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"


class Redis:
    """One connection, opened when it is needed, dropped after any error."""

    def __init__(self, endpoints):
        host, port = endpoints["addrs"][0].rsplit(":", 1)
        self.server = (host, int(port))
        self.source = (endpoints["source"], 0) if endpoints.get("source") else None
        self.conn = None

    def call(self, *words):
        try:
            if self.conn is None:
                self.conn = socket.create_connection(self.server, 2, self.source)  # source: the harness knows us by it
                self.file = self.conn.makefile("rb")
            words = [str(w).encode() for w in words]
            self.conn.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            return self.reply()
        except OSError:
            self.conn = None  # what this connection still carries belongs to nobody
            raise

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        return int(rest) if kind == b":" else rest


def acquire(redis, ask):
    lease, deadline = ask.get("lease_ms", 0) or 10_000, time.monotonic() + ask.get("wait_ms", 0) / 1000
    while True:
        began = time.monotonic_ns()  # before the server starts to count
        if redis.call("SET", ask["key"], ask["owner"], "NX", "PX", int(lease)) is not None:
            now = time.monotonic_ns()
            return {"type": "ok", "count": 1, "valid_ms": lease - (now - began) / 1e6, "mono_ns": now}
        if ask["op"] == "try" or time.monotonic() >= deadline:
            return {"type": "fail", "code": "held", "error": "somebody else has it"}
        time.sleep(0.01)


def script(redis, text, ask, *more):
    began = time.monotonic_ns()
    if redis.call("EVAL", text, 1, ask["key"], ask["owner"], *more) == 0:
        return {"type": "fail", "code": "not-held", "error": "it is not ours any more"}
    now = time.monotonic_ns()
    return {"type": "ok", **({"valid_ms": more[0] - (now - began) / 1e6, "mono_ns": now} if more else {})}


def answer(redis, ask):
    if ask["op"] in ("acquire", "try"):
        return acquire(redis, ask)
    if ask["op"] == "renew":
        return script(redis, RENEW, ask, int(ask.get("lease_ms", 0) or 10_000))
    if ask["op"] == "release":
        return script(redis, RELEASE, ask)
    if ask["op"] == "work":
        time.sleep(ask.get("ms", 0) / 1000)  # the critical section is spent here, in this process
        return {"type": "ok"}
    return {"type": "fail", "code": "unknown-op", "error": "no such operation: " + ask["op"]}


redis = None
for line in sys.stdin:
    ask = json.loads(line)
    if ask["op"] == "init":
        redis, reply = Redis(ask["setup"]["endpoints"]), {"type": "ok"}
    elif ask["op"] == "close":
        reply = {"type": "ok"}
    else:
        try:
            reply = answer(redis, ask)
        except ConnectionRefusedError as e:  # nothing was sent: certainly not done
            reply = {"type": "fail", "code": "refused", "error": str(e)}
        except (OSError, RuntimeError) as e:  # sent, perhaps done: unknown
            reply = {"type": "info", "code": "unknown", "error": str(e)}
    print(json.dumps({"id": ask["id"], **reply}), flush=True)
    if ask["op"] == "close":
        break
