package faults

import (
	"bufio"
	"net"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestConnectionLimit(t *testing.T) {
	f := newFake(cluster.Single)
	f.replies["INFO stats"] = "# Stats\r\nrejected_connections:2\r\n"
	f.replies["CONFIG GET maxclients"] = []any{"maxclients", "10000"}
	in := inject(t, connectionLimitSpec, f.env(), "n1")
	did(t, f, "n1: INFO stats", "n1: CONFIG GET maxclients", "n1: CONFIG SET maxclients 1")
	noEffectYet(t, in) // nobody has connected
	f.set(func() { f.replies["INFO stats"] = "# Stats\r\nrejected_connections:3\r\n" })
	if effect := takesEffect(t, in); effect != "1 refused connection" {
		t.Error(effect)
	}
	f.done()
	heals(t, in)
	did(t, f, "n1: CONFIG SET maxclients 10000")
}

func TestConnectionLimitOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	before := dial(t, c, 1)
	in := inject(t, connectionLimitSpec, Env{Cluster: c}, "n1")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", c.Nodes()[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	refused := &caller{conn, bufio.NewReader(conn)}
	t.Cleanup(func() { _ = conn.Close() })
	refused.expect(t, "-ERR max number of clients reached")
	refused.expect(t, "closed")
	takesEffect(t, in)
	before.send(t, "PING")
	before.expect(t, "+PONG")
	heals(t, in)
	after := dial(t, c, 1)
	after.send(t, "PING")
	after.expect(t, "+PONG")
}
