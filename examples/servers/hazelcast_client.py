#!/usr/bin/env python3
"""Hazelcast's FencedLock for lockchaos, with the client library that scripts/hazelcast downloads.

    chaos run --scenario examples/servers/hazelcast.yaml

A lock belongs to a thread and to the session of its client, which the library keeps alive in the background: each owner
has a thread. The lock ends with its session. It has no lease, so lease_ms is ignored.
Protocol: docs/reference/protocol.md; Hazelcast: https://docs.hazelcast.com/hazelcast/5.3/data-structures/fencedlock
"""
import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bin/hazelcast/python"))
import hazelcast
from hazelcast.errors import IllegalMonitorStateError, LockOwnershipLostError

TIMEOUT = 5.0  # seconds in which the library repeats a request without a reply


def connect_from(source):
    """Connects from the address source: the library has no option for it."""
    connect = socket.socket.connect_ex

    def connect_ex(self, address):
        self.bind((source, 0))
        return connect(self, address)
    socket.socket.connect_ex = connect_ex


class Locks:
    def __init__(self, endpoints):
        if endpoints.get("source"):
            connect_from(endpoints["source"])
        self.client = hazelcast.HazelcastClient(cluster_name="locks", cluster_members=endpoints["addrs"],
                                                invocation_timeout=TIMEOUT)
        self.threads, self.counts = {}, {}
        self.perform({"op": "try", "key": "warm-up", "owner": "warm-up"})  # creates the raft group of the locks
        self.perform({"op": "release", "key": "warm-up", "owner": "warm-up"})

    def perform(self, request):
        """Executes a request in the thread of its owner, which stays while the owner has a hold."""
        name = request["key"], request["owner"]
        thread = self.threads.setdefault(name, ThreadPoolExecutor(1))
        reply = thread.submit(self.execute, request, name).result()
        if name not in self.counts:
            self.threads.pop(name).shutdown()
        return reply

    def execute(self, request, name):
        lock = self.client.cp_subsystem.get_lock(request["key"]).blocking()
        try:
            if request["op"] == "release":
                lock.unlock()
                self.counts[name] -= 1
                if not self.counts[name]:
                    del self.counts[name]
                return {"type": "ok"}
            wait = request.get("wait_ms", 0) / 1000 if request["op"] == "acquire" else 0
            fence = lock.try_lock(wait)
            if fence == lock.INVALID_FENCE:
                return {"type": "fail", "code": "held", "error": "held by another owner"}
            self.counts[name] = self.counts.get(name, 0) + 1
            return {"type": "ok", "token": fence, "count": self.counts[name]}
        except (IllegalMonitorStateError, LockOwnershipLostError) as e:
            self.counts.pop(name, None)
            return {"type": "fail", "code": "not-held", "error": str(e)}

    def handle(self, request):
        if request["op"] in ("acquire", "try", "release") and not request.get("mode") and not request.get("keys"):
            return self.perform(request)
        if request["op"] == "work":
            time.sleep(request.get("ms", 0) / 1000)  # the critical section, in this process
            return {"type": "ok"}
        return {"type": "fail", "code": "unknown-op", "error": "unknown op " + request["op"]}


locks = None
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "init":
        locks = Locks(request["setup"]["endpoints"])
        reply = {"type": "ok", "can": ["reentrant", "try", "watchdog", "fenced"]}
    elif request["op"] == "close":
        reply = {"type": "ok"}
    else:
        try:
            reply = locks.handle(request)
        except Exception as e:  # the library may have sent it
            reply = {"type": "info", "code": "unknown", "error": "%s: %s" % (type(e).__name__, e)}
    print(json.dumps({"id": request["id"], **reply}), flush=True)
    if request["op"] == "close":
        break
os._exit(0)  # threads of the library must not keep the process
