"""redlock-py: client.py redlock | redlock-no-retry."""
import sys
import time

from redis.exceptions import RedisError
from redlock import Redlock

import protocol
import redispy


class Noting(Redlock):
    """Notes requests without a reply: the library does not say whether a server may have executed them."""

    unanswered = 0

    def lock_instance(self, *args):
        try:
            return super().lock_instance(*args)
        except RedisError:
            self.unanswered += 1
            raise


class Client(protocol.Client):
    can = ["try"]

    def __init__(self, kind):
        self.options = redispy.NO_RETRY if kind == "redlock-no-retry" else {}

    def init(self, endpoints, options):
        self.library = Noting(redispy.connect(endpoints, **self.options))

    def acquire(self, request, wait):
        deadline = time.monotonic() + wait
        lease = int(request.get("lease_ms", 0)) or 10000
        while True:
            self.library.unanswered = 0
            lock = self.library.lock(request["key"], lease)
            if lock:
                return lock, {"valid_ms": lock.validity, "mono_ns": time.monotonic_ns()}
            if self.library.unanswered:
                raise RuntimeError("lock() returned False, and a server did not reply")
            if time.monotonic() >= deadline:
                raise protocol.Failed("held", "lock() returned False")

    def release(self, lock):
        self.library.unlock(lock)


protocol.serve(Client(sys.argv[1]))
