package faults

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// diskOf is a fake with that appendfsync.
func diskOf(policy string) *fake {
	f := newFake(cluster.Quorum)
	f.topology.Options["appendfsync"] = policy
	f.fsyncs = map[string]int{"n1": 3, "n2": 3}
	return f
}

// TestSlowDisk: with appendfsync always a server waits for each fsync that the disk delays.
func TestSlowDisk(t *testing.T) {
	f := diskOf("always")
	in := inject(t, slowDiskSpec, f.env(), "n1+n2")
	did(t, f, "disk n1 1s", "disk n2 1s")
	noEffectYet(t, in)
	f.set(func() { f.fsyncs["n2"]++ })
	if effect := takesEffect(t, in); effect != "n2 waits for an fsync before it replies" {
		t.Error(effect)
	}
	heals(t, in)
	did(t, f, "disk n1 0s", "disk n2 0s")
}

// TestSlowDiskInBackground: with everysec, the default, writes were acknowledged before their fsync.
func TestSlowDiskInBackground(t *testing.T) {
	for _, policy := range []string{"everysec", ""} {
		f := diskOf(policy)
		in := inject(t, slowDiskSpec, f.env(), "n1")
		noEffectYet(t, in)
		f.set(func() { f.fsyncs["n1"]++ })
		if effect := takesEffect(t, in); effect != "n1 has acknowledged writes that wait for an fsync" {
			t.Errorf("appendfsync %q: %s", policy, effect)
		}
	}
}

// TestSlowDiskIsHealed: if one disk cannot be slowed, the others are as before.
func TestSlowDiskIsHealed(t *testing.T) {
	f := diskOf("always")
	f.errs["disk n2 1s"] = errBroken
	if in, err := slowDiskSpec.Inject(t.Context(), f.env(), "n1+n2"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	did(t, f, "disk n1 1s", "disk n2 1s", "disk n1 0s", "disk n2 0s")
}

// TestSlowDiskNeedsFsyncs: a server that never waits for its disk cannot have the fault. Whether a server of the user
// does is not known.
func TestSlowDiskNeedsFsyncs(t *testing.T) {
	for _, test := range []struct{ aof, fsync, want string }{
		{"yes", "always", ""}, {"yes", "everysec", ""}, {"yes", "", ""},
		{"", "always", `it needs topology.options.appendonly: "yes"`},
		{"no", "", `it needs topology.options.appendonly: "yes"`},
		{"yes", "no", `it needs topology.options.appendfsync: "always" or "everysec"`},
	} {
		f := newFake(cluster.Single)
		f.topology.Options = map[string]string{}
		for name, value := range map[string]string{"appendonly": test.aof, "appendfsync": test.fsync} {
			if value != "" {
				f.topology.Options[name] = value
			}
		}
		err := slowDiskSpec.Check(f)
		if (err == nil) != (test.want == "") || err != nil && !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("appendonly %q, appendfsync %q: %v, want %q", test.aof, test.fsync, err, test.want)
		}
	}
	if err := slowDiskSpec.Check(newFake(cluster.Command)); err != nil {
		t.Error(err)
	}
}

func TestSlowDiskOfARealServer(t *testing.T) {
	for _, policy := range []string{"always", "everysec"} {
		t.Run(policy, func(t *testing.T) {
			c := startServersWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{
				"appendonly": "yes", "appendfsync": policy}}, slowDiskSpec.Requires)
			in := inject(t, slowDiskSpec, Env{Cluster: c, Amount: time.Minute}, "n1")
			client := dial(t, c, 1)
			noEffectYet(t, in)
			client.send(t, "SET k v")
			takesEffect(t, in)
			if policy == "always" {
				client.expect(t, "silence")
			}
			heals(t, in)
			client.expect(t, "+OK")
		})
	}
}
