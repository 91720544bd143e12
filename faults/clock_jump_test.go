package faults

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestClockJump(t *testing.T) {
	clockShowsEffect(t, clockJumpSpec, "clock n2 1m0s 0", 60*time.Second)
}

func TestClockJumpOfARealServer(t *testing.T) { clockEndsLease(t, clockJumpSpec) }

// clockShowsEffect injects a fault of a minute, which sets the clock by that rule, and lets the server report a correct
// clock and then a clock that is so far ahead.
func clockShowsEffect(t *testing.T, s Spec, rule string, ahead time.Duration) {
	t.Helper()
	f := newFake(cluster.Quorum)
	env := f.env()
	env.Amount = time.Minute
	in := inject(t, s, env, "n2")
	did(t, f, rule)
	noEffectYet(t, in)
	f.set(func() { f.ahead, f.errs["read clock"] = ahead, errBroken })
	noEffectYet(t, in)
	f.set(func() { delete(f.errs, "read clock") })
	takesEffect(t, in)
	f.done()
	heals(t, in)
	did(t, f, "clock n2 0s 0")
	f.errs[rule] = errBroken
	if in, err := s.Inject(t.Context(), env, "n2"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
}

// clockEndsLease checks that a lease of 50 s on a real server expires within 40 s of a fault of a minute.
func clockEndsLease(t *testing.T, s Spec) {
	t.Helper()
	c := startServersWith(t, cluster.Topology{Kind: cluster.Single}, s.Requires)
	run(t, c, "n1", "SET", "k", "v", "PX", "50000")
	in := inject(t, s, Env{Cluster: c, Amount: time.Minute}, "n1")
	takesEffect(t, in)
	for end := time.Now().Add(40 * time.Second); run(t, c, "n1", "GET", "k") != nil; {
		if time.Now().After(end) {
			t.Fatal("a lease of 50 s has not expired")
		}
	}
	heals(t, in)
}

// TestClocksOfEtcd: clock faults are refused there with the reason.
func TestClocksOfEtcd(t *testing.T) {
	for _, row := range []Spec{clockJumpSpec, clockDriftSpec} {
		if why := row.WrongTopology(cluster.Etcd); !strings.Contains(why, "Go program") {
			t.Errorf("%s on etcd: %q", row.Name, why)
		}
		if why := row.WrongTopology(cluster.ZooKeeper); why != "" {
			t.Errorf("%s on ZooKeeper: %q", row.Name, why)
		}
	}
}
