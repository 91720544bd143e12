package locks

import (
	"context"
	"testing"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/topology"
)

// testClient is an initialized client of a lock in this process.
type testClient struct {
	*client.Local
	t      *testing.T
	locker client.Locker // that the client has opened
}

// handle executes r.
func (c *testClient) handle(ctx context.Context, r client.Request) client.Reply {
	reply, err := c.Do(ctx, r)
	if err != nil {
		c.t.Errorf("%+v: %v", r, err)
	}
	return reply
}

// onServer is a client of the lock that row describes, and its notices. Seeds of clients must differ, as in a run: ids
// are drawn from them.
func onServer(
	t *testing.T, row client.Spec, addr string, seed uint64, options map[string]string,
) (*testClient, <-chan client.Reply) {
	t.Helper()
	c := &testClient{t: t}
	open := row.Open
	row.Open = func(s client.Setup, notify func(client.Reply)) (_ client.Locker, err error) {
		c.locker, err = open(s, notify)
		return c.locker, err
	}
	nothing := func() {}
	c.Local = client.NewLocal(client.MonotonicNow, client.Hooks{BeforeStep: nothing, BeforeNotice: nothing, AfterTimeout: nothing}, row)
	setup := client.Setup{
		Lock: row.Name, Seed: seed, Options: options,
		Endpoints: topology.Endpoints{Kind: topology.Single, Addrs: []string{addr}},
	}
	if reply := c.handle(t.Context(), client.Request{ID: 1, Op: client.Init, Setup: &setup}); reply.Type != "ok" {
		t.Fatalf("init: %+v", reply)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c, c.Notices()
}
