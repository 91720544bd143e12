package locktest

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Ports of servers are below Linux' range of ephemeral ports (from 32768 on): no other process gets one by chance
// between the choice and the server's start, or while a server is down during a test. The bus port of a Redis Cluster
// node, 10000 above, is below 65536.
const (
	lowPort   = 10000
	portRange = 20000
	portTried = 500
	claimHost = "127.0.2.250" // without servers; package internal/cluster/process claims its ports there as well
)

// FreeAddr returns a loopback address for a server of the test. Until the end of the test no other test gets its
// port, in any process.
func FreeAddr(t testing.TB) string {
	t.Helper()
	first, err := ephemeralPort()
	for try := 0; try < portTried && err == nil; try++ {
		port := strconv.Itoa(lowPort + (first+try*7)%portRange)
		var claimed bool
		if claimed, err = claim(t, port); claimed {
			return net.JoinHostPort("127.0.0.1", port)
		}
	}
	t.Fatalf("no free port for a server from %d to %d, or %s is not a loopback address: %v",
		lowPort, lowPort+portRange, claimHost, err)
	return ""
}

// ephemeralPort returns a port chosen by the kernel.
func ephemeralPort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// claim reserves port for t if it is free.
func claim(t testing.TB, port string) (bool, error) {
	kept, err := net.Listen("tcp", net.JoinHostPort(claimHost, port))
	if err != nil {
		return false, ignoreInUse(err)
	}
	probe, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return false, errors.Join(ignoreInUse(err), kept.Close())
	}
	t.Cleanup(func() { _ = kept.Close() })
	return true, probe.Close()
}

func ignoreInUse(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	return err
}
