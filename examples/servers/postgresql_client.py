#!/usr/bin/env python3
"""A session-level advisory lock of PostgreSQL, for lockchaos, that needs only the standard library.

    chaos run --scenario examples/servers/postgresql.yaml

The lock belongs to the session: the server frees it when the connection ends, and its holder does not learn it. So it has
no lease and no fencing token. The session's application_name is the owner of the request, which "--sample HOST:PORT
NAME…" prints for the locks that are held. The server must trust all connections (pg_hba.conf).
Protocol: docs/reference/protocol.md; PostgreSQL: https://www.postgresql.org/docs/current/protocol-flow.html.
"""
import json
import socket
import struct
import sys
import time

TIMEOUT = 1.0  # seconds to wait for a reply of the server


class NotSent(Exception):
    """The request was not sent: it has no effect."""


class Refused(Exception):
    """The server refused the request: it has no effect."""


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def number(key):
    """The two numbers that stand for the name of a lock, as SQL."""
    return "1, hashtext(%s)" % quoted(key)


class Session:
    """One connection, opened on demand. A new one has none of the locks of the last."""

    def __init__(self, addr, source):
        host, port = addr.rsplit(":", 1)
        self.server, self.source, self.sock = (host, int(port)), source, None

    def open(self):
        self.sock = socket.create_connection(self.server, TIMEOUT, (self.source or "", 0))
        self.file = self.sock.makefile("rb")
        words = b"user\0postgres\0database\0postgres\0\0"
        self.sock.sendall(struct.pack("!II", len(words) + 8, 3 << 16) + words)
        self.rows()

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None

    def rows(self):
        """Reads messages until the server is ready, and returns the first column of the rows."""
        rows, refused = [], None
        while True:
            head = self.file.read(5)
            body = self.file.read(struct.unpack("!I", head[1:])[0] - 4) if len(head) == 5 else b""
            if not body:
                raise OSError("connection closed")
            if head[:1] == b"D":
                size = struct.unpack("!i", body[2:6])[0]
                rows.append(body[6:6 + size].decode())
            elif head[:1] == b"E":
                refused = body.replace(b"\0", b" ").decode()
            elif head[:1] == b"Z":
                if refused:
                    raise Refused(refused)
                return rows

    def query(self, sql):
        """Returns the first column. OSError: the outcome is unknown."""
        if not self.sock:
            try:
                self.open()
            except (OSError, Refused) as e:
                self.close()
                raise NotSent(str(e))
        try:
            text = sql.encode() + b"\0"
            self.sock.sendall(b"Q" + struct.pack("!I", len(text) + 4) + text)
            return self.rows()
        except OSError:
            self.close()
            raise


def acquire(session, request):
    deadline = time.monotonic() + request.get("wait_ms", 0) / 1000
    sql = "SET application_name = %s; SELECT pg_try_advisory_lock(%s)" % (
        quoted(request["owner"]), number(request["key"]))
    while True:
        code, error = "held", "held by another session"
        try:
            if session.query(sql) == ["t"]:
                return {"type": "ok"}
        except NotSent as e:
            code, error = "refused", str(e)
        if request["op"] == "try" or time.monotonic() >= deadline:
            return {"type": "fail", "code": code, "error": error}
        time.sleep(0.02)


def release(session, request):
    if not session.sock or session.query("SELECT pg_advisory_unlock(%s)" % number(request["key"])) != ["t"]:
        return {"type": "fail", "code": "not-held", "error": "the session that had the lock has ended"}
    return {"type": "ok"}


def handle(session, request):
    if request.get("mode"):
        return {"type": "fail", "code": "unknown-op", "error": "this lock has no modes"}
    if request["op"] in ("acquire", "try"):
        return acquire(session, request)
    if request["op"] == "release":
        return release(session, request)
    if request["op"] == "work":
        time.sleep(request.get("ms", 0) / 1000)  # the critical section, in this process
        return {"type": "ok"}
    return {"type": "fail", "code": "unknown-op", "error": "unknown op " + request["op"]}


def sample(addr, keys):
    held = {}
    session = Session(addr, None)
    for key in keys:
        owners = session.query(
            "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE locktype = 'advisory' AND granted AND (classid, objid) = (1, hashtext(%s)::oid)" % quoted(key))
        if owners:
            held[key] = {"owner": owners[0]}
    print(json.dumps(held))


def main():
    session = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "init":
            at = request["setup"]["endpoints"]
            session, reply = Session(at["addrs"][0], at.get("source")), {"type": "ok", "can": ["try", "unleased"]}
        elif request["op"] == "close":
            reply = {"type": "ok"}
        else:
            try:
                reply = handle(session, request)
            except (NotSent, Refused) as e:  # certainly no effect
                reply = {"type": "fail", "code": "refused", "error": str(e)}
            except OSError as e:  # sent: effect unknown
                reply = {"type": "info", "code": "unknown", "error": str(e)}
        print(json.dumps({"id": request["id"], **reply}), flush=True)
        if request["op"] == "close":
            break


if sys.argv[1:2] == ["--sample"]:
    sample(sys.argv[2], sys.argv[3:])
else:
    main()
