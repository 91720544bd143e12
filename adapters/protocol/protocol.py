"""The client's end of the protocol (docs/reference/protocol.md) for lock libraries in Python: serve(connect, lock)."""
import json
import os
import sys
import threading
import time

_out = threading.Lock()


def say(**reply):
    with _out:
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


class Failed(Exception):
    """The operation certainly did not happen."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def lost(key, owner):
    """Says that a hold is lost."""
    say(event="lost", key=key, owner=owner, mono_ns=time.monotonic_ns())


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


class Client:
    """What an adapter implements. Methods raise Failed if nothing happened; any other error is an unknown outcome."""

    can = []

    def init(self, endpoints, options):
        raise NotImplementedError

    def acquire(self, request, wait):
        """Returns the lock object and further fields of the reply; wait in seconds, 0: one try."""
        raise NotImplementedError

    def release(self, lock):
        raise NotImplementedError

    def renew(self, lock, lease):
        raise Failed("unknown-op", "no renewal")


def _perform(client, locks, request):
    op, key = request["op"], (request.get("owner"), request.get("key"))
    modes = ("read", "write") if "read-write" in client.can else ()
    if request.get("mode") and request["mode"] not in modes or request.get("keys") \
            or request.get("permits") and "permits" not in client.can:
        raise Failed("unknown-op", "this lock does not support these modes, permits or keys")
    if op in ("acquire", "try"):
        lock, more = client.acquire(request, request.get("wait_ms", 0) / 1000 if op == "acquire" else 0)
        locks[key] = lock
        return more
    if op == "work":
        time.sleep(request.get("ms", 0) / 1000)
        return {}
    if op in ("release", "renew"):
        lock = locks.get(key)
        if lock is None:
            raise Failed("not-held", "nothing is held")
        if op == "renew":
            return client.renew(lock, request.get("lease_ms", 0) / 1000) or {}
        locks.pop(key)
        client.release(lock)
        return {}
    raise Failed("unknown-op", "unknown operation " + op)


def serve(client):
    """Serves requests until close or the end of input."""
    locks = {}
    for line in sys.stdin:
        request = json.loads(line)
        number = request["id"]
        try:
            if request["op"] == "init":
                setup = request["setup"]
                client.init(setup["endpoints"], setup.get("options") or {})
                say(id=number, type="ok", can=client.can)
            elif request["op"] == "close":
                say(id=number, type="ok")
                break
            else:
                say(id=number, type="ok", **_perform(client, locks, request))
        except Failed as e:
            say(id=number, type="fail", code=e.code, error=str(e)[:300])
        except Exception as e:  # noqa: BLE001: whatever a library raises
            say(id=number, type="info", code="unknown", error=repr(e)[:300])
    os._exit(0)  # threads of a library must not keep the process
