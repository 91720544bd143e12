package faults

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestSnapshotsFailing: a server that made snapshots before makes one again when it is healed.
func TestSnapshotsFailing(t *testing.T) {
	f := newFake(cluster.Single)
	f.replies["CONFIG GET save"] = []any{"save", "60 1000"}
	f.replies["CONFIG GET dbfilename"] = []any{"dbfilename", "dump.rdb"}
	f.replies["INFO persistence"] = "rdb_last_bgsave_status:err\r\n"
	in := inject(t, snapshotsFailingSpec, f.env(), "n1")
	did(t, f, "n1: INFO errorstats", "n1: CONFIG GET save", "n1: CONFIG GET dbfilename",
		"n1: CONFIG SET save 3600 1 dbfilename "+impossibleName(), "n1: BGSAVE", "n1: INFO persistence")
	noEffectYet(t, in) // no client has written
	f.set(func() { f.replies["INFO persistence"] = "rdb_last_bgsave_status:ok\r\n" })
	f.done()
	heals(t, in)
	did(t, f, "n1: CONFIG SET save 60 1000 dbfilename dump.rdb", "n1: BGSAVE", "n1: INFO persistence")
}

func TestSnapshotsFailingOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	run(t, c, "n1", "SET", "k", "v")
	client := dial(t, c, 1)
	in := inject(t, snapshotsFailingSpec, Env{Cluster: c}, "n1")
	noEffectYet(t, in)
	for _, write := range []string{"SET k w", "DEL k", `EVAL "return redis.call('DEL','k')" 0`} {
		client.send(t, write)
		if got := client.receive(20e9); !strings.HasPrefix(got, "-MISCONF ") {
			t.Errorf("%s: received %q", write, got)
		}
	}
	takesEffect(t, in)
	heals(t, in)
	client.send(t, "DEL k")
	client.expect(t, ":1")
}
