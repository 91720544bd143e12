package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestPubsubCut(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, pubsubCutSpec, f.env(), "n1")
	f.set(func() { f.replies["CLIENT KILL TYPE pubsub"] = int64(0) })
	doesNotBite(t, in) // there is no subscription yet
	f.set(func() { f.replies["CLIENT KILL TYPE pubsub"] = int64(3) })
	if proof := bites(t, in); proof != "3 subscriptions at n1 were ended" {
		t.Error(proof)
	}
	heals(t, in)
}

func TestPubsubCutOfARealSubscriber(t *testing.T) {
	c := servers(t, cluster.Single)
	client, other := dial(t, c, 1), dial(t, c, 1)
	client.say(t, "SUBSCRIBE news")
	client.hears(t, "*3")
	in := inject(t, pubsubCutSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	for got := ""; got != "over"; got = client.hear(10e9) {
		if got == "silence" {
			t.Fatal("the subscription lives")
		}
	}
	other.say(t, "PING")
	other.hears(t, "+PONG")
	heals(t, in)
}
