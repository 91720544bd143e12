package client

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestFailedDialsDoNotStopDialing: go-redis counts failed dials over the life of a pool, and from its size on fails
// commands without dialing, while it dials once a second in the background. A promotion must not be hidden by that.
func TestFailedDialsDoNotStopDialing(t *testing.T) {
	const commands = 300
	var dials atomic.Int64
	refuse := func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, syscall.ECONNREFUSED
	}
	for _, kind := range []string{Single, Sharded} {
		for name, send := range map[string]func(redis.UniversalClient) error{
			"command":  func(c redis.UniversalClient) error { return c.Ping(t.Context()).Err() },
			"pipeline": func(c redis.UniversalClient) error { _, err := c.Pipelined(t.Context(), twoPings(t)); return err },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				conns, err := connect(Setup{Endpoints: Endpoints{Kind: kind, Addrs: []string{"10.0.0.1:6379"}}, Dial: refuse})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = closeAll(conns) }()
				dials.Store(0)
				for i := range commands {
					before := dials.Load()
					if err := send(conns[0]); err == nil {
						t.Fatal("a refused dial, and no error")
					}
					if dials.Load() == before {
						t.Fatalf("after %d failed dials a command did not dial", i)
					}
				}
			})
		}
	}
}

func twoPings(t *testing.T) func(redis.Pipeliner) error {
	return func(p redis.Pipeliner) error {
		p.Ping(t.Context())
		p.Ping(t.Context())
		return nil
	}
}

// TestClientOfASimulatedClusterLearnsCommandsAtOnce: go-redis reads the table of commands under a mutex with the first
// command, which stalls virtual time if another goroutine sends one meanwhile.
func TestClientOfASimulatedClusterLearnsCommandsAtOnce(t *testing.T) {
	dials := 0
	refuse := func(context.Context, string, string) (net.Conn, error) { dials++; return nil, syscall.ECONNREFUSED }
	conns, err := connect(Setup{Endpoints: Endpoints{Kind: Sharded, Addrs: []string{"10.0.0.1:6379"}}, Dial: refuse})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeAll(conns) }()
	if dials == 0 {
		t.Error("the client has sent no command when it is made")
	}
}
