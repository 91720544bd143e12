package faults

import (
	"fmt"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestMessageLost(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, messageLostSpec, f.env(), "client:0")
	did(t, f, "rule client:0>* 2 0")
	if rule := f.rules[0]; rule != (cluster.Rule{Mute: true}) {
		t.Errorf("the rule is %+v", rule)
	}
	doesNotBite(t, in)
	f.set(func() { f.traffic.Messages = 1 })
	if proof := bites(t, in); proof != "1 published messages were lost" {
		t.Error(proof)
	}
	heals(t, in)
}

// TestMessageLostOfARealSubscriber: in both protocols a message never comes, another subscriber has it, the
// connection lives on and answers, and after the healing messages come again.
func TestMessageLostOfARealSubscriber(t *testing.T) {
	c := servers(t, cluster.Single)
	for protocol, pong := range map[int][]string{2: {"*2", "$4", "pong", "$0", ""}, 3: {"+PONG"}} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			deaf, other, sender := dial(t, c, 1), dialAs(t, c, 1, 1), dialAs(t, c, 2, 1)
			kind := map[int]string{2: "*3", 3: ">3"}[protocol]
			for _, subscriber := range []*caller{deaf, other} {
				if protocol == 3 {
					subscriber.say(t, "HELLO 3")
					for line := ""; line != "*0"; line = subscriber.hear(20e9) { // modules: none
						if line == "silence" || line == "over" {
							t.Fatal("HELLO 3 was not answered")
						}
					}
				}
				subscriber.say(t, "SUBSCRIBE news")
				for _, want := range []string{kind, "$9", "subscribe", "$4", "news", ":1"} {
					subscriber.hears(t, want)
				}
			}
			in := inject(t, messageLostSpec, Env{Cluster: c}, "client:0")
			sender.say(t, "PUBLISH news lost")
			sender.hears(t, ":2")
			bites(t, in)
			for _, want := range []string{kind, "$7", "message", "$4", "news", "$4", "lost"} {
				other.hears(t, want)
			}
			deaf.say(t, "PING")
			for _, want := range pong {
				deaf.hears(t, want)
			}
			heals(t, in)
			sender.say(t, "PUBLISH news later")
			sender.hears(t, ":2")
			for _, want := range []string{kind, "$7", "message", "$4", "news", "$5", "later"} {
				deaf.hears(t, want)
			}
			for _, caller := range []*caller{deaf, other, sender} {
				_ = caller.Close()
			}
		})
	}
}
