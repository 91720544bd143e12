package sim_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestSilentConnections: an open connection no longer carries data, also when the rule has ended, and is not reset; a
// new one works.
func TestSilentConnections(t *testing.T) {
	simulate(t, single(), func(w *world) {
		a, addr := w.Client(0), w.Nodes()[0].Addr
		conn, err := a.Dial(w.ctx, "tcp", addr)
		w.ok(err)
		pass(10 * time.Millisecond)
		w.ok(w.SetRule(link0(), cluster.Both, cluster.Rule{Silent: true}))
		c := w.client(0)
		w.ok(c.Ping(w.ctx).Err())
		for range 2 {
			_, err = conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
			w.ok(err)
			w.ok(conn.SetReadDeadline(time.Now().Add(time.Second)))
			if _, err = conn.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading: %v", err)
			}
			w.ok(w.SetRule(link0(), cluster.Both, cluster.Rule{}))
		}
		if traffic, _ := w.Traffic(link0(), cluster.Forward); traffic.Resets != 0 || traffic.Dropped != 28 {
			t.Errorf("%+v", traffic)
		}
		w.ok(c.Ping(w.ctx).Err())
		w.ok(conn.Close())
	})
}
