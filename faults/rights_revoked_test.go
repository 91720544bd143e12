package faults

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// aclRow is a row of ACL LOG, as far as it is read.
func aclRow(count int64) []any { return []any{"count", count, "reason", "channel"} }

func TestRightsRevoked(t *testing.T) {
	f := newFake(cluster.Quorum)
	f.replies["ACL LOG 128"] = []any{aclRow(2)}
	in := inject(t, rightsRevokedSpec, f.env(), "n1+n2")
	did(t, f, "n1: ACL LOG 128", "n2: ACL LOG 128", "n1: ACL SETUSER default resetchannels",
		"n2: ACL SETUSER default resetchannels")
	noEffectYet(t, in)
	f.set(func() { f.replies["ACL LOG 128"] = []any{aclRow(1), aclRow(3)} })
	if effect := takesEffect(t, in); effect != "4 refused commands" { // 2 of each node
		t.Error(effect)
	}
	f.done()
	heals(t, in)
	did(t, f, "n1: ACL SETUSER default allchannels", "n2: ACL SETUSER default allchannels")
}

func TestRightsRevokedIsRefusedOnSentinel(t *testing.T) {
	err := rightsRevokedSpec.Check(newFake(cluster.Sentinel))
	if err == nil || !strings.Contains(err.Error(), "it needs topology single or replicated or cluster or quorum") {
		t.Errorf("error: %v", err)
	}
}

func TestRightsRevokedOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	subscriber, client := dial(t, c, 1), dial(t, c, 1)
	subscriber.send(t, "SUBSCRIBE ch")
	subscriber.expect(t, "*3")
	in := inject(t, rightsRevokedSpec, Env{Cluster: c}, "n1")
	for subscriber.receive(20e9) != "closed" { // after the rest of the confirmation
	}
	client.send(t, "PUBLISH ch x")
	client.expect(t, "-NOPERM this user has no permissions to access one of the channels used as arguments")
	takesEffect(t, in)
	heals(t, in)
	client.send(t, "PUBLISH ch x")
	client.expect(t, ":0")
}
