package lock

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// proxy is between a client and a server, and loses replies.
type proxy struct{ *locktest.Proxy }

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	return &proxy{locktest.StartProxy(t, target)}
}

// lose drops the replies to the next n requests about locks, and holds no others from now on.
func (p *proxy) lose(n int) { p.DropReplies(n, "eval", "\r\nset\r\n") }

// hang holds the replies to requests about locks.
func (p *proxy) hang() { p.HoldReplies("eval", "\r\nset\r\n") }

// behindProxy starts a server, and makes a client that reaches it through a proxy.
func behindProxy(t *testing.T, o Options) (direct *redis.Client, p *proxy, c *Client) {
	t.Helper()
	s := startRedis(t)
	p = startProxy(t, s.Addr)
	return s.Dial(t), p, newTestClient(t, dialRedis(t, p.Addr), o)
}
