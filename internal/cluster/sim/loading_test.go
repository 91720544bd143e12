package sim_test

import (
	"strings"
	"testing"
)

// TestRestartWithData: a server that restarts with data on its disk replies LOADING for a while, and is not up to a
// sample meanwhile; one without data has nothing to load.
func TestRestartWithData(t *testing.T) {
	for _, persists := range []string{"yes", "no"} {
		t.Run("appendonly "+persists, func(t *testing.T) {
			cfg := single()
			cfg.Topology.Options = map[string]string{"appendonly": persists}
			simulate(t, cfg, func(w *world) {
				w.ok(w.client(0).Set(w.ctx, "k", "v", 0).Err())
				w.ok(w.Kill(w.ctx, "n1"))
				w.ok(w.Restart(w.ctx, "n1"))
				_, err := w.Do(w.ctx, "n1", "EXISTS", "k")
				loads := err != nil && strings.Contains(err.Error(), "LOADING")
				if want := persists == "yes"; loads != want || w.Sample(w.ctx, "n1", nil).Up == want {
					t.Errorf("after the restart: %v", err)
				}
				pass(loaded)
				if kept, err := w.Do(w.ctx, "n1", "EXISTS", "k"); err != nil || kept == int64(1) != (persists == "yes") {
					t.Errorf("later: %v, %v", kept, err)
				}
			})
		})
	}
}
