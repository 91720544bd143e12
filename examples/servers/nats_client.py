#!/usr/bin/env python3
"""A lock in a NATS key-value store, for lockchaos, that needs only the standard library.

    chaos run --scenario examples/servers/nats.yaml

The lock of a name is a key of bucket "locks". Acquire creates it (it fails if there is one), release deletes the
revision that acquire created, and the bucket's maximum age is the lease: the server forgets a key that is older. So the
first acquire decides the lease of all, and one with another lease is refused.
Protocol: docs/reference/protocol.md; NATS: https://docs.nats.io/reference/reference-protocols/nats-protocol and
https://github.com/nats-io/nats-architecture-and-design (ADR-8, key-value stores).
"""
import base64
import json
import os
import socket
import sys
import time

TIMEOUT = 1.0  # seconds to wait for a reply of the server
EXPECTED = "Nats-Expected-Last-Subject-Sequence"  # the write is refused unless this is the key's revision


class NotSent(Exception):
    """The request was not sent, or was refused: it has no effect."""


class Nats:
    """One connection to the first server that accepts it."""

    def __init__(self, addrs, source):
        self.addrs, self.source, self.sock, self.last = addrs, source, None, 0

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None

    def open(self):
        errors = []
        for addr in self.addrs:
            host, port = addr.rsplit(":", 1)
            try:
                self.sock = socket.create_connection((host, int(port)), TIMEOUT, (self.source or "", 0))
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.buf = b""
                self.inbox = "_INBOX." + base64.b32encode(os.urandom(10)).decode()
                self.deadline = time.monotonic() + TIMEOUT
                self.line()  # INFO
                self.sock.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB %s.* 1\r\nPING\r\n'
                                  % self.inbox.encode())
                while self.line() != b"PONG":
                    pass
                return
            except OSError as e:
                errors.append("%s: %s" % (addr, e))
                self.close()
        raise OSError("; ".join(errors))

    def fill(self):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OSError("no reply")
        self.sock.settimeout(left)
        more = self.sock.recv(65536)
        if not more:
            raise OSError("connection closed")
        self.buf += more

    def line(self):
        while b"\r\n" not in self.buf:
            self.fill()
        line, self.buf = self.buf.split(b"\r\n", 1)
        return line

    def take(self, n):
        while len(self.buf) < n + 2:
            self.fill()
        data, self.buf = self.buf[:n], self.buf[n + 2:]
        return data

    def request(self, subject, data=b"", headers=None):
        """Returns the JSON reply. OSError: the outcome is unknown. NotSent: there is no effect."""
        if not self.sock:
            try:
                self.open()
            except OSError as e:
                raise NotSent(str(e))
        self.last += 1
        reply = ("%s.%d" % (self.inbox, self.last)).encode()
        head = b""
        if headers:
            head = b"NATS/1.0\r\n" + b"".join(("%s: %s\r\n" % h).encode() for h in headers.items()) + b"\r\n"
            self.sock.settimeout(TIMEOUT)
            message = b"HPUB %s %s %d %d\r\n" % (subject.encode(), reply, len(head), len(head) + len(data))
        else:
            message = b"PUB %s %s %d\r\n" % (subject.encode(), reply, len(data))
        self.deadline = time.monotonic() + TIMEOUT
        try:
            self.sock.sendall(message + head + data + b"\r\n")
            while True:
                words = self.line().split(b" ")
                if words[0] == b"PING":
                    self.sock.sendall(b"PONG\r\n")
                elif words[0] == b"MSG":
                    body = self.take(int(words[-1]))
                    if words[1] == reply:
                        return json.loads(body)
                elif words[0] == b"HMSG":
                    whole = self.take(int(words[-1]))
                    if words[1] == reply:
                        if whole.startswith(b"NATS/1.0 503"):
                            return {"error": {"code": 503, "description": "no JetStream"}}
                        return json.loads(whole[int(words[-2]):] or b"{}")
        except OSError:
            self.close()
            raise


class Locks:
    def __init__(self, endpoints):
        self.nats, self.replicas = Nats(endpoints["addrs"], endpoints.get("source")), min(len(endpoints["addrs"]), 3)
        self.lease, self.revisions = None, {}

    def bucket(self, lease):
        """Creates the bucket, with the same settings as every other client."""
        if self.lease == lease:
            return
        if self.lease:
            raise NotSent("the lease of the bucket is %d ms" % self.lease)
        reply = self.nats.request("$JS.API.STREAM.CREATE.KV_locks", json.dumps({
            "name": "KV_locks", "subjects": ["$KV.locks.>"], "max_msgs_per_subject": 1, "discard": "new",
            "num_replicas": self.replicas, "storage": "file",
            "max_age": lease * 10**6, "duplicate_window": min(lease, 120_000) * 10**6}).encode())
        if "error" in reply:
            raise NotSent(reply["error"].get("description", "no bucket"))
        self.lease = lease

    def acquire(self, request):
        key, owner, lease = request["key"], request["owner"], int(request.get("lease_ms", 0)) or 10_000
        deadline = time.monotonic() + request.get("wait_ms", 0) / 1000
        while True:
            code, error = "held", "held by another owner"
            try:
                self.bucket(lease)
                start = time.monotonic_ns()  # before the server starts the lease
                reply = self.nats.request("$KV.locks." + key, owner.encode(), {EXPECTED: "0"})
                now = time.monotonic_ns()
                valid = lease - (now - start) / 1e6
                if "error" not in reply and valid > 0:
                    self.revisions[key, owner] = reply["seq"]
                    return {"type": "ok", "token": reply["seq"], "valid_ms": valid, "mono_ns": now}
            except NotSent as e:
                code, error = "refused", str(e)
            if request["op"] == "try" or time.monotonic() >= deadline:
                return {"type": "fail", "code": code, "error": error}
            time.sleep(0.02)

    def release(self, request):
        revision = self.revisions.pop((request["key"], request["owner"]), None)
        if revision is None:
            return {"type": "fail", "code": "not-held", "error": "not held by this owner"}
        reply = self.nats.request("$JS.API.STREAM.MSG.DELETE.KV_locks", json.dumps({"seq": revision}).encode())
        if "error" not in reply:
            return {"type": "ok"}
        return {"type": "fail", "code": "not-held", "error": reply["error"].get("description", "refused")}

    def handle(self, request):
        if request.get("mode"):
            return {"type": "fail", "code": "unknown-op", "error": "this lock has no modes"}
        if request["op"] in ("acquire", "try"):
            return self.acquire(request)
        if request["op"] == "release":
            return self.release(request)
        if request["op"] == "work":
            time.sleep(request.get("ms", 0) / 1000)  # the critical section, in this process
            return {"type": "ok"}
        return {"type": "fail", "code": "unknown-op", "error": "unknown op " + request["op"]}


locks = None
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "init":
        locks, reply = Locks(request["setup"]["endpoints"]), {"type": "ok", "can": ["try", "fenced"]}
    elif request["op"] == "close":
        reply = {"type": "ok"}
    else:
        try:
            reply = locks.handle(request)
        except NotSent as e:  # certainly no effect
            reply = {"type": "fail", "code": "refused", "error": str(e)}
        except OSError as e:  # sent: effect unknown
            reply = {"type": "info", "code": "unknown", "error": str(e)}
    print(json.dumps({"id": request["id"], **reply}), flush=True)
    if request["op"] == "close":
        break
