"""Connections from the address of a client, for drivers that have no option for it: they connect to a relay."""
import socket
import struct
import threading

import protocol

# a close sends a reset
ABORT = struct.pack("ii", 1, 0)


def _copy(source, sink):
    """Copies bytes until source ends, and ends sink in the same way."""
    try:
        while chunk := source.recv(1 << 16):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (source, sink):
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                s.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has ended
                pass


def _serve(listener, address, source):
    while True:
        down, _ = listener.accept()
        threading.Thread(target=_connect, args=(down, address, source), daemon=True).start()


def _connect(down, address, source):
    try:
        up = socket.create_connection(address, source_address=(source, 0))
    except OSError:
        down.close()
        return
    with down, up:
        for s in (down, up):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=_copy, args=(up, down), daemon=True)
        back.start()
        _copy(down, up)
        back.join()


def start(endpoints):
    """Returns host and port of a relay to the one server of the endpoints. It is a part of this process."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = protocol.split(endpoints["addrs"][0])
    threading.Thread(target=_serve, args=(listener, address, endpoints.get("source", "")), daemon=True).start()
    return listener.getsockname()
