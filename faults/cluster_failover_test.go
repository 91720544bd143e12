package faults

import (
	"context"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

func TestClusterFailover(t *testing.T) {
	f := newFake(cluster.Sharded)
	in := inject(t, clusterFailoverSpec, f.env(), "n5")
	did(t, f, "n5: CLUSTER FAILOVER")
	noEffectYet(t, in)
	f.set(func() { f.roles["n5"] = "master" })
	takesEffect(t, in)
	heals(t, in)
}

// TestTakeOversOfRealServers: each of the three ways, one after the other, on one cluster.
func TestTakeOversOfRealServers(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Sharded)
	for _, step := range []struct {
		row  Spec
		node string
	}{{clusterFailoverSpec, "n4"}, {clusterFailoverForceSpec, "n5"}, {clusterTakeoverSpec, "n6"}} {
		heals(t, takesOver(t, c, step.row, step.node))
	}
	becomes(t, c, "master", "master", "master", "slave", "slave", "slave")
}

// takesOver repeats a takeover until it takes effect. On a busy machine a replica gives up a takeover that takes longer
// than five seconds (CLUSTER_MF_TIMEOUT in Redis' cluster.h), or refuses it because it counts its master as failed.
func takesOver(t *testing.T, c *process.Cluster, row Spec, node string) Injection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var in Injection
	for why := error(nil); ctx.Err() == nil; {
		var err error
		if in == nil || role(t, c, node) != "master" { // it may be late
			in, err = row.Inject(ctx, Env{Cluster: c}, node)
		}
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, 6*time.Second)
			_, err = in.Observe(limited)
			cancel()
		}
		if err == nil {
			return in
		}
		if why == nil || why.Error() != err.Error() {
			t.Logf("%s of %s again: %v", row.Name, node, err)
		}
		why = err
	}
	t.Fatalf("%s: %s did not become master", row.Name, node)
	return nil
}
