"""Tries what docs/contributors/hypotheses.md says of redlock-py: hypotheses.py HOST:PORT… RUNS

Nothing listens at the last address.
"""
import sys
import uuid

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redlock import MultipleRedlockException, Redlock


def main():
    *addresses, runs = sys.argv[1:]
    servers = []
    for address in addresses:
        host, port = address.rsplit(":", 1)
        servers.append(redis.Redis(host=host, port=int(port), retry=Retry(NoBackoff(), 0)))
    library = Redlock(servers)
    seen = 0
    for _ in range(int(runs)):
        key = "hypothesis-" + uuid.uuid4().hex
        try:
            outcome = f"lock() returned {library.lock(key, 8000)}"
        except MultipleRedlockException as e:
            outcome = f"lock() raised {e!r:.60}"
            left = [s.pttl(key) for s in servers[:-1]]
            seen += all(ms > 0 for ms in left)
            outcome += f", and the keys on the others expire in {left} ms"
        print("redlock-py", outcome)
    print(f"redlock-py reproduced in {seen} of {runs} runs")


main()
