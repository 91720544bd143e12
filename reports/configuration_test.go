package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
)

// TestConfigurationIsTrue: only a lock that states so renews its leases, and the options of a ZooKeeper ensemble are
// not Redis's.
func TestConfigurationIsTrue(t *testing.T) {
	plain := newSynth("plain", "orders", 1, cluster.Topology{Kind: cluster.Single,
		Options: map[string]string{"appendonly": "yes"}}, 1)
	watchdog := newSynth("watchdog", "orders", 1, cluster.Topology{Kind: cluster.ZooKeeper,
		Options: map[string]string{"forceSync": "no"}}, 1)
	watchdog.m.Can = promise.Watchdog
	leased := newSynth("leased", "orders", 1, cluster.Topology{Kind: cluster.Etcd,
		Options: map[string]string{"unsafe-no-fsync": "true"}}, 1)
	leased.m.Lease = ms(4500)
	for _, test := range []struct {
		run  *synth
		want []string
	}{
		{plain, []string{"Requested lease", "none", "redis appendonly", "yes"}},
		{watchdog, []string{"Requested lease", "none: the lock renews automatically", "ZooKeeper forceSync", "no"}},
		{leased, []string{"Requested lease", "4.50 s", "etcd unsafe-no-fsync", "true"}},
	} {
		page := render(t, test.run.load(t), "html")
		for pair := range slices.Chunk(test.want, 2) {
			if want := fmt.Sprintf("<dt>%s</dt><dd>%s</dd>", pair[0], pair[1]); !strings.Contains(page, want) {
				t.Errorf("%s: no %s", test.run.m.Scenario, want)
			}
		}
	}
}
