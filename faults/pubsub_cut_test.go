package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestPubsubCut(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, pubsubCutSpec, f.env(), "n1")
	f.set(func() { f.replies["CLIENT KILL TYPE pubsub"] = int64(0) })
	noEffectYet(t, in) // there is no subscription yet
	f.set(func() { f.replies["CLIENT KILL TYPE pubsub"] = int64(3) })
	if effect := takesEffect(t, in); effect != "3 subscribers disconnected" {
		t.Error(effect)
	}
	heals(t, in)
}

func TestPubsubCutOfARealSubscriber(t *testing.T) {
	c := startServers(t, cluster.Single)
	client, other := dial(t, c, 1), dial(t, c, 1)
	client.send(t, "SUBSCRIBE news")
	client.expect(t, "*3")
	in := inject(t, pubsubCutSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	for got := ""; got != "closed"; got = client.receive(10e9) {
		if got == "silence" {
			t.Fatal("the subscription is still open")
		}
	}
	other.send(t, "PING")
	other.expect(t, "+PONG")
	heals(t, in)
}
