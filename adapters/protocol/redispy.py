"""Connections of redis-py, with its defaults."""
import socket

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import protocol

# without the retries that redis-py makes by default, as a control
NO_RETRY = {"retry": Retry(NoBackoff(), 0)}


class SourceConnection(redis.Connection):
    """Connects from the address of this client: redis-py has no option for it."""

    source = None

    def _connect(self):
        s = socket.create_connection((self.host, self.port), self.socket_connect_timeout or 2, (self.source, 0))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.settimeout(self.socket_timeout)
        return s


def connect(endpoints, **options):
    """Returns a redis-py client for each server, or for the master that Sentinels name."""
    source = endpoints.get("source", "")
    connection = type("Connection", (SourceConnection,), {"source": source})
    options = {"password": endpoints.get("password"), **options}
    if endpoints["kind"] == "sentinel":
        from redis.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection
        managed = type("Managed", (SentinelManagedConnection,), {
            "_connect": SourceConnection._connect, "source": source})
        addresses = [protocol.split(a) for a in endpoints["sentinels"]]
        sentinel = Sentinel(addresses, socket_timeout=1,
                            sentinel_kwargs={"socket_timeout": 1, "password": options["password"]})
        for client in sentinel.sentinels:
            client.connection_pool.connection_class = connection
        pool = SentinelConnectionPool(endpoints["master_name"], sentinel, connection_class=managed, socket_timeout=2,
                                      **options)
        return [redis.Redis(connection_pool=pool)]
    clients = []
    for address in endpoints["addrs"]:
        host, port = protocol.split(address)
        client = redis.Redis(host=host, port=port, socket_timeout=2, **options)
        client.connection_pool.connection_class = connection
        clients.append(client)
    return clients
