"""pottery's Redlock: client.py redlock | redlock-no-retry."""
import sys
import time

from pottery import Redlock
from pottery.exceptions import ReleaseUnlockedLock

import protocol
import redispy


class Client(protocol.Client):
    def __init__(self, kind):
        self.options = redispy.NO_RETRY if kind.endswith("no-retry") else {}

    def init(self, endpoints, options):
        self.masters = set(redispy.connect(endpoints, **self.options))

    def acquire(self, request, wait):
        lock = Redlock(key=request["key"], masters=self.masters, auto_release_time=request.get("lease_ms", 0) / 1000 or 10)
        if not lock.acquire(blocking=True, timeout=wait):
            raise protocol.Failed("held", "acquire() returned False")
        now = time.monotonic_ns()
        return lock, {"valid_ms": lock.locked() * 1000, "mono_ns": now}

    def release(self, lock):
        try:
            lock.release()
        except ReleaseUnlockedLock as e:
            raise protocol.Failed("not-held", repr(e)) from e


protocol.serve(Client(sys.argv[1]))
