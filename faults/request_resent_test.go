package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestRequestsAreExecutedTwice: the rule of both faults, and the signs of their effect.
func TestRequestsAreExecutedTwice(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want cluster.Rule
	}{
		{requestResentSpec, cluster.Rule{Twice: cluster.BeforeReply, TwiceBy: 20 * time.Millisecond, OneIn: resentIn}},
		{requestDuplicatedSpec, cluster.Rule{Twice: cluster.AfterReply, TwiceBy: 500 * time.Millisecond, OneIn: resentIn}},
	} {
		t.Run(c.spec.Name, func(t *testing.T) {
			f := newFake(cluster.Single)
			f.traffic.Twice = 2 // before the fault
			env := f.env()
			env.Rand = rand.New(rand.NewPCG(5, 1))
			in := inject(t, c.spec, env, "client:0")
			did(t, f, "rule client:0>* 1 0")
			c.want.Seed = f.rules[0].Seed
			if rule := f.rules[0]; rule != c.want || rule.Seed == 0 {
				t.Errorf("the rule is %+v", rule)
			}
			noEffectYet(t, in)
			f.set(func() { f.traffic.Twice = 3 })
			if effect := takesEffect(t, in); effect != "1 request executed twice" {
				t.Error(effect)
			}
			heals(t, in)
		})
	}
}

// TestRequestResentByARealProxy: the client gets the reply of the second execution, with its own password, and requests
// of other clients, and requests without writes, are executed once.
func TestRequestResentByARealProxy(t *testing.T) {
	c := startServers(t, cluster.Single)
	client, other := dial(t, c, 1), dialAs(t, c, 1, 1)
	in := inject(t, requestResentSpec, Env{Cluster: c, Rand: rand.New(rand.NewPCG(3, 1))}, "client:0")
	for range 30 {
		client.send(t, "LPUSH orders x")
		client.receive(20 * time.Second)
		other.send(t, "INCR others")
		other.receive(20 * time.Second)
	}
	takesEffect(t, in)
	heals(t, in)
	traffic, err := c.Traffic(cluster.Link{From: "client:0", To: cluster.Any}, cluster.Forward)
	if err != nil || traffic.Twice < 5 || traffic.Twice > 25 {
		t.Fatalf("%d of 30 requests were executed twice, %v", traffic.Twice, err)
	}
	if got := run(t, c, "n1", "LLEN", "orders"); got != 30+traffic.Twice {
		t.Errorf("%v elements, want 30 and %d", got, traffic.Twice)
	}
	gets(t, c, "n1", "others", "30")
}

// TestShortResendsOnlyDelay: with a short time between the executions nothing excuses an unknown outcome.
func TestShortResendsOnlyDelay(t *testing.T) {
	for amount, want := range map[time.Duration]string{0: history.AffectsDelays, time.Second: history.AffectsTraffic} {
		if got := requestResentSpec.AffectsBy(amount, cluster.Single); got != want {
			t.Errorf("amount %v affects %q, want %q", amount, got, want)
		}
	}
	if got := requestDuplicatedSpec.AffectsBy(time.Minute, cluster.Single); got != history.AffectsRequests {
		t.Errorf("late copies affect %q", got)
	}
}
