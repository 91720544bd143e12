"""Tries S33 of docs/contributors/hypotheses.md: hypotheses.py RUNS HOST:PORT…, with three servers.

Two of three masters extend a lock at once, and their replies arrive after the extended lease has expired and another
client has acquired the lock.
"""
import socket
import sys
import threading
import time
import uuid

import redis
from pottery import Redlock


class Relay:
    """Passes bytes to a server; while `replies` is not set, it holds back what the server sends."""

    def __init__(self, address):
        self.server, self.replies = address, threading.Event()
        self.replies.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            down, _ = self.listener.accept()
            up = socket.create_connection(self.server)
            threading.Thread(target=self.copy, args=(down, up, None), daemon=True).start()
            threading.Thread(target=self.copy, args=(up, down, self.replies), daemon=True).start()

    @staticmethod
    def copy(source, target, gate):
        while data := source.recv(16384):
            if gate:
                gate.wait()
            target.sendall(data)


def attempt(direct, relays):
    clients = [redis.Redis(host="127.0.0.1", port=r.listener.getsockname()[1]) for r in relays]
    lock = Redlock(key="hypothesis-" + uuid.uuid4().hex, masters=set(clients), auto_release_time=3)
    if not lock.acquire(timeout=10):
        return False, "acquire() returned False"
    lock.extend()  # from here on, every server knows the script
    for relay in relays[:2]:
        relay.replies.clear()
    outcome = []

    def extend():
        try:
            lock.extend()
            outcome.append("returned without an error")
        except Exception as e:  # what the library raises is the result
            outcome.append(f"raised {e!r:.80}")

    worker = threading.Thread(target=extend)
    worker.start()
    granted = 0  # another client asks until a majority is free
    while granted < 2:
        time.sleep(0.1)
        granted += sum(bool(s.set(lock.key, "another", nx=True, px=60000)) for s in direct)
    for relay in relays[:2]:
        relay.replies.set()
    worker.join()
    return outcome[0].startswith("returned"), f"another client holds {granted} of 3 masters; extend() {outcome[0]}"


def main():
    runs, *addresses = sys.argv[1:]
    servers = [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in addresses)]
    direct = [redis.Redis(host=host, port=port) for host, port in servers]
    seen = 0
    for _ in range(int(runs)):
        reproduced, what = attempt(direct, [Relay(s) for s in servers])
        print("S33", what)
        seen += reproduced
    print(f"S33 reproduced in {seen} of {runs} runs")


main()
