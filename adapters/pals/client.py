"""PALs' lock on PostgreSQL's advisory locks: client.py lock."""
import uuid

import pals
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

import protocol
import relay


class Client(protocol.Client):
    can = ["try", "unleased"]

    def init(self, endpoints, options):
        """Connects and acquires another lock: a cold first acquire would look like a lost wake-up."""
        host, port = relay.start(endpoints)
        url = URL.create("postgresql+psycopg", "postgres", endpoints.get("password"), host, port, "postgres",
                         {"sslmode": "disable"})
        self.locker = pals.Locker("chaos", url)
        lock, _ = self.acquire({"key": "warm-up-" + uuid.uuid4().hex}, 1)
        self.release(lock)

    def acquire(self, request, wait):
        lock = self.locker.lock(request["key"])
        try:
            granted = lock.acquire(blocking=wait > 0, acquire_timeout=max(1, round(wait * 1000)))
        except DBAPIError as e:
            if "advisory" not in (e.statement or ""):  # not connected, or the session of the connection has ended
                raise protocol.Failed("error", repr(e)) from e
            raise
        if not granted:
            raise protocol.Failed("held", "acquire() returned False")
        return lock, {}

    def release(self, lock):
        if not lock.release():
            raise protocol.Failed("not-held", "release() returned False")


protocol.serve(Client())
