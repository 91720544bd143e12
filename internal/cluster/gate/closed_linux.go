package gate

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerClosed reports whether the other end has closed the connection, without reading earlier bytes.
func peerClosed(c *net.TCPConn) (closed bool) {
	const closeWait = 8 // TCP_CLOSE_WAIT of <netinet/tcp.h>
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		closed = err == nil && info.State == closeWait
	})
	return closed || err != nil
}
