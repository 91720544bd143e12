"""Prints who holds locks at a Redis server: redis_sample.py HOST PORT NAME…

For topology.sample of a Redis that the harness knows by its command line alone. A lock is a key whose value is the owner.
"""
import json
import socket
import sys

conn = socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)
file = conn.makefile("rb")


def call(*words):
    words = [w.encode() for w in words]
    conn.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    line = file.readline()
    if line[:1] != b"$":
        return line[1:-2].decode()
    return None if line[1:2] == b"-" else file.read(int(line[1:]) + 2)[:-2].decode()


held = {}
for name in sys.argv[3:]:
    owner, ttl = call("GET", name), int(call("PTTL", name))
    if owner is not None and ttl >= 0:
        held[name] = {"owner": owner, "ttl_ms": ttl}
print(json.dumps(held))
