"""redis-py's Lock: client.py lock | lock-no-retry."""
import sys

from redis.exceptions import LockError, LockNotOwnedError

import protocol
import redispy


class Client(protocol.Client):
    can = ["try", "renew", "scripts"]

    def __init__(self, kind):
        self.options = redispy.NO_RETRY if kind.endswith("no-retry") else {}

    def init(self, endpoints, options):
        self.redis = redispy.connect(endpoints, **self.options)[0]

    def acquire(self, request, wait):
        lease = request.get("lease_ms", 0) / 1000 or None
        lock = self.redis.lock(request["key"], timeout=lease, sleep=0.05, thread_local=False)
        if not lock.acquire(blocking=wait > 0, blocking_timeout=wait or None):
            raise protocol.Failed("held", "acquire() returned False")
        return lock, {}

    def release(self, lock):
        try:
            lock.release()
        except (LockNotOwnedError, LockError) as e:
            raise protocol.Failed("not-held", repr(e)) from e

    def renew(self, lock, lease):
        try:
            lock.extend(lease, replace_ttl=True)
        except (LockNotOwnedError, LockError) as e:
            raise protocol.Failed("not-held", repr(e)) from e


protocol.serve(Client(sys.argv[1]))
