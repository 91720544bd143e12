package client

import (
	"context"
	"testing"
)

// testClient is an initialized client of a lock in this process.
type testClient struct {
	*Local
	t      *testing.T
	locker Locker // that the client has opened
}

// handle executes r.
func (c *testClient) handle(ctx context.Context, r Request) Reply {
	reply, err := c.Do(ctx, r)
	if err != nil {
		c.t.Errorf("%+v: %v", r, err)
	}
	return reply
}

// onServer is a client of the lock that row describes, and its notices. Seeds of clients must differ, as in a run: ids
// are drawn from them.
func onServer(
	t *testing.T, row Spec, addr string, seed uint64, options map[string]string,
) (*testClient, <-chan Reply) {
	t.Helper()
	c := &testClient{t: t}
	open := row.Open
	row.Open = func(s Setup, notify func(Reply)) (_ Locker, err error) {
		c.locker, err = open(s, notify)
		return c.locker, err
	}
	nothing := func() {}
	c.Local = NewLocal(MonotonicNow, Hooks{BeforeStep: nothing, BeforeNotice: nothing, AfterTimeout: nothing}, row)
	setup := Setup{
		Lock: row.Name, Seed: seed, Options: options,
		Endpoints: Endpoints{Kind: Single, Addrs: []string{addr}},
	}
	if reply := c.handle(t.Context(), Request{ID: 1, Op: Init, Setup: &setup}); reply.Type != "ok" {
		t.Fatalf("init: %+v", reply)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return c, c.Notices()
}
