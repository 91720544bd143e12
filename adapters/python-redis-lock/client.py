"""python-redis-lock: client.py lock | lock-renewed."""
import math
import sys

import redis_lock

import protocol
import redispy


class Client(protocol.Client):
    can = ["wakes", "scripts"]

    def __init__(self, kind):
        self.renewed = kind == "lock-renewed"
        if self.renewed:
            self.can = ["wakes", "watchdog", "scripts"]

    def init(self, endpoints, options):
        self.redis = redispy.connect(endpoints)[0]

    def acquire(self, request, wait):
        lease = request.get("lease_ms", 0) / 1000
        if lease % 1:  # the library passes its lease to SET EX: whole seconds
            lease = math.ceil(lease)
        renewed = self.renewed and not lease  # with a lease, the holder wants it to end
        lock = redis_lock.Lock(self.redis, request["key"], expire=int(lease) or 2, auto_renewal=renewed)
        # a timeout is given to BLPOP, which rounds 0 to "for ever"
        if not lock.acquire(blocking=wait > 0, timeout=max(1, int(wait)) if wait > 0 else None):
            raise protocol.Failed("held", "acquire() returned False")
        return lock, {}

    def release(self, lock):
        try:
            lock.release()
        except redis_lock.NotAcquired as e:
            raise protocol.Failed("not-held", repr(e)) from e


protocol.serve(Client(sys.argv[1]))
