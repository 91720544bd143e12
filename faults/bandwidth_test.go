package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestBandwidth(t *testing.T) {
	f := newFake(cluster.Single)
	env := f.env()
	for amount, rate := range map[time.Duration]int64{0: 10_000, time.Second: 1000, time.Minute: 16} {
		env.Amount, f.rules = amount, nil
		in := inject(t, bandwidthSpec, env, "all")
		did(t, f, "rule *>* 3 0")
		if rule := f.rules[0]; rule != (cluster.Rule{Rate: rate}) {
			t.Errorf("%v: the rule is %+v", amount, rule)
		}
		noEffectYet(t, in)
		f.set(func() { f.waiting["*"] = 1 })
		takesEffect(t, in)
		f.set(func() { f.waiting["*"] = 0 })
	}
}

func TestBandwidthWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, bandwidthSpec, Env{Cluster: c, Amount: 100 * time.Millisecond}, "client:0")
	began := time.Now()
	client.send(t, "ECHO "+strings.Repeat("x", 2000))
	takesEffect(t, in)
	client.expect(t, "$2000")
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("2,000 bytes each way at 10,000 per second took %v", took)
	}
	heals(t, in)
}
