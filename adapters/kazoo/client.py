"""kazoo's locks on ZooKeeper: client.py lock | lock-unwatched | read-write | semaphore."""
import socket
import sys
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState

import protocol


class FromSource(SequentialThreadingHandler):
    """Connects from the address of this client: kazoo has no option for it."""

    source = None

    def create_connection(self, address, timeout=None, **_):
        return socket.create_connection(address, timeout, (self.source, 0))


def seconds(duration):
    """What an option such as 1500ms or 12s says."""
    return float(duration[:-2]) / 1000 if duration.endswith("ms") else float(duration[:-1])


class Client(protocol.Client):
    can = ["try", "watchdog", "wakes", "keeps-grants"]

    def __init__(self, kind):
        self.kind = kind
        self.zk = None
        self.session = None
        self.used = False  # a lock was requested
        self.held = {}
        if kind == "read-write":
            self.can = ["try", "watchdog", "wakes", "read-write", "keeps-grants"]
        if kind == "semaphore":
            self.can = ["try", "watchdog", "wakes", "permits", "keeps-grants"]

    def init(self, endpoints, options):
        """Connects and acquires another lock: a cold first acquire would look like a lost wake-up."""
        self.endpoints = endpoints
        self.connect(seconds(options.get("session", "10s")))
        lock = self.recipe({"key": "warm-up-" + uuid.uuid4().hex, "owner": "warm-up"})
        lock.acquire(timeout=10)
        lock.release()

    def connect(self, session):
        handler = FromSource()
        handler.source = self.endpoints.get("source", "")
        zk = KazooClient(hosts=",".join(self.endpoints["addrs"]), timeout=session, handler=handler)
        if self.kind != "lock-unwatched":
            zk.add_listener(self.changed)
        zk.start(timeout=10)
        self.zk, self.session = zk, session

    def changed(self, state):
        """What the documentation asks of users: without a connection, the lock may be lost."""
        if state != KazooState.CONNECTED:
            for key, owner in list(self.held.values()):
                protocol.lost(key, owner)
            self.held.clear()

    def recipe(self, request):
        path, owner = "/chaos/" + request["key"], request["owner"]
        if self.kind == "semaphore":
            if request.get("permits", 1) != 1:
                raise protocol.Failed("unknown-op", "the library has no request for several permits")
            return self.zk.Semaphore(path, owner, request.get("limit", 1))
        if self.kind == "read-write":
            return (self.zk.ReadLock if request.get("mode") == "read" else self.zk.WriteLock)(path, owner)
        return self.zk.Lock(path, owner)

    def acquire(self, request, wait):
        lease = request.get("lease_ms", 0) / 1000 or self.session
        if not self.used and lease != self.session:
            self.zk.stop()
            self.zk.close()
            self.connect(lease)
        self.used = True
        lock = self.recipe(request)
        try:
            granted = lock.acquire(blocking=wait > 0, timeout=wait or None)
        except LockTimeout as e:
            raise protocol.Failed("held", repr(e)) from e
        if not granted:
            raise protocol.Failed("held", "acquire() returned False")
        self.held[id(lock)] = request["key"], request["owner"]
        return lock, {}

    def release(self, lock):
        self.held.pop(id(lock), None)
        if not lock.release():
            raise protocol.Failed("not-held", "release() returned False")


protocol.serve(Client(sys.argv[1]))
