package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestChannelRefused: the channels of the lock that the waiter wants are refused, and else the first lock's.
func TestChannelRefused(t *testing.T) {
	f := newFake(cluster.Single)
	e := f.env()
	e.Keys = []string{"lock-1", "orders", "lock-3"}
	in := inject(t, channelRefusedSpec, e, "n1")
	did(t, f, "n1: ACL LOG 128", "n1: ACL SETUSER default resetchannels &*lock-1* &*lock-3*")
	heals(t, in)
	did(t, f, "n1: ACL SETUSER default allchannels")
	e.State = clientState{waiter: -1}
	inject(t, channelRefusedSpec, e, "n1")
	did(t, f, "n1: ACL LOG 128", "n1: ACL SETUSER default resetchannels &*orders* &*lock-3*")
}

func TestChannelRefusedOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, channelRefusedSpec, Env{Cluster: c, Keys: []string{"lock-1", "lock-2"}}, "n1")
	client := dial(t, c, 1)
	client.send(t, "PUBLISH {lock-2}:free x")
	client.expect(t, ":0")
	noEffectYet(t, in)
	client.send(t, "SUBSCRIBE {lock-1}:free")
	client.expect(t, "-NOPERM this user has no permissions to access one of the channels used as arguments")
	takesEffect(t, in)
	heals(t, in)
	client.send(t, "SUBSCRIBE {lock-1}:free")
	client.expect(t, "*3")
}
