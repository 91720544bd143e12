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
	noEffectYet(t, in)
	f.set(func() { f.traffic.Messages = 1 })
	if effect := takesEffect(t, in); effect != "1 published message lost" {
		t.Error(effect)
	}
	heals(t, in)
}

// TestMessageLostOfARealSubscriber: in both protocols a message is lost, another subscriber receives it, the connection
// stays up and replies, and after healing messages arrive again.
func TestMessageLostOfARealSubscriber(t *testing.T) {
	c := startServers(t, cluster.Single)
	for protocol, pong := range map[int][]string{2: {"*2", "$4", "pong", "$0", ""}, 3: {"+PONG"}} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			channel := fmt.Sprintf("news%d", protocol) // the server may not know yet that earlier subscribers have left
			cutOff, other, sender := dial(t, c, 1), dialAs(t, c, 1, 1), dialAs(t, c, 2, 1)
			kind := map[int]string{2: "*3", 3: ">3"}[protocol]
			for _, subscriber := range []*caller{cutOff, other} {
				if protocol == 3 {
					subscriber.send(t, "HELLO 3")
					for line := ""; line != "*0"; line = subscriber.receive(20e9) { // modules: none
						if line == "silence" || line == "closed" {
							t.Fatal("no reply to HELLO 3")
						}
					}
				}
				subscriber.send(t, "SUBSCRIBE "+channel)
				for _, want := range []string{kind, "$9", "subscribe", "$5", channel, ":1"} {
					subscriber.expect(t, want)
				}
			}
			in := inject(t, messageLostSpec, Env{Cluster: c}, "client:0")
			sender.send(t, "PUBLISH "+channel+" lost")
			sender.expect(t, ":2")
			takesEffect(t, in)
			for _, want := range []string{kind, "$7", "message", "$5", channel, "$4", "lost"} {
				other.expect(t, want)
			}
			cutOff.send(t, "PING")
			for _, want := range pong {
				cutOff.expect(t, want)
			}
			heals(t, in)
			sender.send(t, "PUBLISH "+channel+" later")
			sender.expect(t, ":2")
			for _, want := range []string{kind, "$7", "message", "$5", channel, "$5", "later"} {
				cutOff.expect(t, want)
			}
			for _, caller := range []*caller{cutOff, other, sender} {
				_ = caller.Close()
			}
		})
	}
}
