"""python-redis-lock: client.py lock | lock-renewed."""
import math
import sys
import time

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
        expire = int(lease) or (2 if renewed else None)
        lock = redis_lock.Lock(self.redis, request["key"], expire=expire, auto_renewal=renewed)
        granted, end = wait <= 0 and lock.acquire(blocking=False), time.monotonic() + wait
        while not granted and wait > 0:
            # the library refuses a timeout above its lease, and gives it to BLPOP, which rounds 0 to "for ever"
            granted = lock.acquire(timeout=max(1, int(min(wait, lease or wait))))
            wait = int(end - time.monotonic())
        if not granted:
            raise protocol.Failed("held", "acquire() returned False")
        return lock, {}

    def release(self, lock):
        try:
            lock.release()
        except redis_lock.NotAcquired as e:
            raise protocol.Failed("not-held", repr(e)) from e


protocol.serve(Client(sys.argv[1]))
