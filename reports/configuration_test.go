package reports

import (
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestConfigurationIsTrue: only a lock that states so renews its leases, and the options of a ZooKeeper ensemble are
// not those of Redis.
func TestConfigurationIsTrue(t *testing.T) {
	plain := newSynth("plain", "orders", 1, cluster.Topology{Kind: cluster.Single,
		Options: map[string]string{"appendonly": "yes"}}, 1)
	watchdog := newSynth("watchdog", "orders", 1, cluster.Topology{Kind: cluster.ZooKeeper,
		Options: map[string]string{"forceSync": "no"}}, 1)
	watchdog.m.Can = client.Capabilities{client.RenewsItself}
	leased := newSynth("leased", "orders", 1, cluster.Topology{Kind: cluster.Etcd,
		Options: map[string]string{"unsafe-no-fsync": "true"}}, 1)
	leased.m.Lease = ms(4500)
	for _, test := range []struct {
		run  *synth
		want []field
	}{
		{plain, []field{{"Requested lease", "none"}, {"redis appendonly", "yes"}}},
		{watchdog, []field{{"Requested lease", "none: the lock renews automatically"}, {"ZooKeeper forceSync", "no"}}},
		{leased, []field{{"Requested lease", "4.50 s"}, {"etcd unsafe-no-fsync", "true"}}},
	} {
		var p page
		p.configuration(test.run.load(t))
		for _, want := range test.want {
			if !slices.Contains(p.Config, want) {
				t.Errorf("%s: no %v in %v", test.run.m.Scenario, want, p.Config)
			}
		}
	}
}
