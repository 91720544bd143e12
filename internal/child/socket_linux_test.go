package child

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestSocketVariableOfAReusedPort: the kernel may give the local port of a closed connection to a connection with
// another remote address while the closed one is still listed (TIME_WAIT).
func TestSocketVariableOfAReusedPort(t *testing.T) {
	first, second := listen(t), listen(t)
	// The address is this test's own: a connection that another program opens from 127.0.0.1 would take the port between
	// the two.
	dialer := net.Dialer{Control: reuseAddress, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 31, 7, 9)}}
	closed := dial(t, &dialer, first)
	dialer.LocalAddr = closed.LocalAddr()
	local := addrPort(closed.LocalAddr())
	peer, err := first.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil { // the side that closes first waits
		t.Fatal(err)
	}
	if _, err := peer.Read(make([]byte, 1)); err == nil {
		t.Fatal("the other side was not closed")
	}
	_ = peer.Close()
	open := dial(t, &dialer, second)
	defer func() { _ = open.Close() }()
	if list, err := os.ReadFile("/proc/net/tcp"); err != nil ||
		strings.Count(string(list), ": "+socketAddress(local)+" ") != 2 {
		t.Fatalf("the closed connection is not listed beside the open one (%v):\n%s", err, list)
	}

	name, want, _ := strings.Cut(os.Environ()[0], "=")
	if got, ok := SocketVariable(local, addrPort(second.Addr()), name); got != want || !ok {
		t.Errorf("the open connection: got %q, %v; want %q", got, ok, want)
	}
	if got, ok := SocketVariable(local, addrPort(first.Addr()), name); ok {
		t.Errorf("the closed connection: got %q of some process", got)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func dial(t *testing.T, dialer *net.Dialer, to net.Listener) net.Conn {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp4", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func addrPort(a net.Addr) netip.AddrPort { return a.(*net.TCPAddr).AddrPort() }

func reuseAddress(_, _ string, raw syscall.RawConn) error {
	var err error
	control := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	})
	if control != nil {
		return control
	}
	return err
}
