package locktest

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Ports for servers lie below the range from which Linux takes the port of
// whoever asks for any (from 32768 on): nobody gets one by chance between the
// choice and the server's start, nor while a server is down in the middle of a test.
// A Redis Cluster's own bus port, 10000 above, fits below 65536 too.
const (
	lowPort   = 10000
	portRange = 20000
	portTried = 500
	claimHost = "127.0.2.250" // nobody's; package internal/cluster/process claims its ports there too
)

// FreeAddr is an address of loopback for a server that the test starts. Until
// the test ends no other test, in whatever process, is given its port.
func FreeAddr(t testing.TB) string {
	t.Helper()
	first, err := anyPort()
	for try := 0; try < portTried && err == nil; try++ {
		port := strconv.Itoa(lowPort + (first+try*7)%portRange)
		var claimed bool
		if claimed, err = claim(t, port); claimed {
			return net.JoinHostPort("127.0.0.1", port)
		}
	}
	t.Fatalf("finding a port for a server between %d and %d: none is free, or %s is not loopback: %v",
		lowPort, lowPort+portRange, claimHost, err)
	return ""
}

// anyPort is a number that the kernel draws.
func anyPort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// claim keeps port for t, if nobody has it.
func claim(t testing.TB, port string) (bool, error) {
	kept, err := net.Listen("tcp", net.JoinHostPort(claimHost, port))
	if err != nil {
		return false, unlessTaken(err)
	}
	probe, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return false, errors.Join(unlessTaken(err), kept.Close())
	}
	t.Cleanup(func() { _ = kept.Close() })
	return true, probe.Close()
}

func unlessTaken(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	return err
}
