package faults

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestClockDrift(t *testing.T) {
	f := newFake(cluster.Quorum)
	env := f.env()
	env.Amount = time.Minute
	in := inject(t, clockDriftSpec, env, "n2")
	did(t, f, "clock n2 0s 60")
	setTime := func(ahead time.Duration) {
		now := time.Now().Add(ahead)
		f.replies["TIME"] = []any{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}
	}
	f.set(func() { setTime(0) })
	noEffectYet(t, in)
	f.set(func() { setTime(1 * time.Second) })
	takesEffect(t, in)
	f.done()
	heals(t, in)
	did(t, f, "clock n2 0s 0")
	f.errs["clock n2 0s 60"] = errBroken
	if in, err := clockDriftSpec.Inject(t.Context(), env, "n2"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
}

func TestClockDriftOfARealServer(t *testing.T) {
	c := startServersWith(t, cluster.Topology{Kind: cluster.Single}, clockDriftSpec.Requires)
	run(t, c, "n1", "SET", "k", "v", "PX", "50000")
	in := inject(t, clockDriftSpec, Env{Cluster: c, Amount: time.Minute}, "n1")
	takesEffect(t, in)
	for end := time.Now().Add(40 * time.Second); run(t, c, "n1", "GET", "k") != nil; {
		if time.Now().After(end) {
			t.Fatal("a lease of 50 s has not expired")
		}
	}
	heals(t, in)
}
