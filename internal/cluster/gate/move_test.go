package gate

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestMove: open connections stay, new ones reach the other server under the rules of its gate, and the stale caller's
// reach the old one until the move is settled.
func TestMove(t *testing.T) {
	s, g, a, _ := connected(t)
	other := newServer(t)
	to := openGate(t, other.listener.Addr().String())
	to.SetRule("a", cluster.Back, cluster.Rule{Mode: cluster.Hold})
	must(t, g.Move(to, "b"))
	a.write(t, "old")
	s.expect(t, "old")
	a.expect(t, "re old")
	fresh, stale := dial(t, g, "127.0.0.7"), dial(t, g, "127.0.0.8")
	fresh.write(t, "new")
	other.expect(t, "new")
	waitFor(t, func() bool { return to.Traffic("a", cluster.Back).Waiting > 0 })
	if got := to.Traffic("a", cluster.Both); got.Passed != 4 || got.Waiting != 7 {
		t.Errorf("%+v", got)
	}
	stale.write(t, "stale")
	s.expect(t, "stale")
	g.Settle()
	settled := dial(t, g, "127.0.0.8")
	settled.write(t, "settled")
	other.expect(t, "settled")
}

// TestReset: only the connections of callers that it concerns end.
func TestReset(t *testing.T) {
	_, g, a, b := connected(t)
	g.Reset(func(caller string) bool { return caller == "a" })
	a.expect(t, "RST")
	b.write(t, "1")
	b.expect(t, "re 1")
}

// TestAMovedAddressIsRefusedWithItsServer: the address belongs to the server to which it has moved, and has nothing to
// do with its former server, until it is moved back.
func TestAMovedAddressIsRefusedWithItsServer(t *testing.T) {
	s, g, _, _ := connected(t)
	other := newServer(t)
	to := openGate(t, other.listener.Addr().String())
	must(t, g.Refuse())
	must(t, g.Move(to, "")) // listens again
	must(t, g.Refuse())
	dial(t, g, "127.0.0.8").write(t, "1")
	other.expect(t, "1")
	must(t, to.Refuse())
	refused(t, g)
	must(t, g.Admit()) // the old server is started again
	refused(t, g)
	must(t, to.Admit())
	dial(t, g, "127.0.0.8").write(t, "2")
	other.expect(t, "2")
	must(t, to.Refuse())
	must(t, g.Move(g, ""))
	dial(t, g, "127.0.0.8").write(t, "3")
	s.expect(t, "3")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails unless the kernel refuses a connection to g.
func refused(t *testing.T, g *Gate) {
	t.Helper()
	c, err := net.Dial("tcp", g.Addr())
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialing = %v, want it refused", err)
	}
}
