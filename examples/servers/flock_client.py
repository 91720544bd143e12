#!/usr/bin/env python3
"""A lock that needs no server, for lockchaos: flock(2) on a file. It needs only the standard library.

    chaos run --scenario examples/servers/flock.yaml

The kernel keeps the lock while the process that has it lives, and frees it when that process ends. The file is removed
with each release, so a process that has locked a file looks whether it is still the one at that path.
Protocol: docs/reference/protocol.md.
"""
import fcntl
import json
import os
import re
import sys
import tempfile
import time

held = {}  # files by key and owner


def path(key):
    return os.path.join(tempfile.gettempdir(), re.sub(r"[^\w.-]", "_", key) + ".lock")


def lock(key):
    """Returns the locked file; None: another process has it."""
    file = os.open(path(key), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), os.stat(path(key))):
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(file)  # which another process has, or has removed
    return None


def acquire(request):
    deadline = time.monotonic() + request.get("wait_ms", 0) / 1000
    while True:
        file = lock(request["key"])
        if file is not None:
            held[request["key"], request["owner"]] = file
            return {"type": "ok"}
        if request["op"] == "try" or time.monotonic() >= deadline:
            return {"type": "fail", "code": "held", "error": "held by another process"}
        time.sleep(0.01)


def release(request):
    file = held.pop((request["key"], request["owner"]), None)
    if file is None:
        return {"type": "fail", "code": "not-held", "error": "not held by this owner"}
    os.unlink(path(request["key"]))
    os.close(file)
    return {"type": "ok"}


def handle(request):
    if request["op"] == "init":
        return {"type": "ok", "can": ["try", "unleased"]}
    if request.get("mode"):
        return {"type": "fail", "code": "unknown-op", "error": "this lock has no modes"}
    if request["op"] in ("acquire", "try"):
        return acquire(request)
    if request["op"] == "release":
        return release(request)
    if request["op"] == "work":
        time.sleep(request.get("ms", 0) / 1000)  # the critical section, in this process
    elif request["op"] != "close":
        return {"type": "fail", "code": "unknown-op", "error": "unknown op " + request["op"]}
    return {"type": "ok"}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **handle(request)}), flush=True)
    if request["op"] == "close":
        break
