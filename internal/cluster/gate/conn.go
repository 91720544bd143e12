package gate

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// dialTimeout bounds the gate's own connection attempt. The server is on the same
// machine; it is reached only if the server hangs and its backlog is full.
const dialTimeout = 10 * time.Second

// conn is one connection through the gate: two sockets, two pumps.
type conn struct {
	client *net.TCPConn
	target string // of the server
	pumps  [2]pump
	ctx    context.Context // done when the connection is over
	cancel context.CancelFunc

	mu     sync.Mutex
	server *net.TCPConn // nil until connected
	ended  bool
}

// serve relays until both sides have ended, or the connection is reset.
func (c *conn) serve() {
	defer c.reset(nil) // frees the sockets, after both sides have ended
	for !c.dial(c.target) {
		if !c.waitForHold() {
			return
		}
	}
	c.pumps[0].src, c.pumps[0].dst = c.client, c.server
	c.pumps[1].src, c.pumps[1].dst = c.server, c.client
	var both sync.WaitGroup
	both.Go(c.pumps[0].run)
	both.Go(c.pumps[1].run)
	both.Wait()
	for d := range c.pumps {
		p := &c.pumps[d]
		p.dir.waiting.Add(-p.held.Swap(0)) // what was never delivered
	}
}

func (c *conn) dial(target string) bool {
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(c.ctx, "tcp", target)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = server.Close()
		return false
	}
	c.server = server.(*net.TCPConn)
	return true
}

// waitForHold delays a failed connection attempt as long as a rule holds or drops
// bytes: the caller must not see the failure. True: a hold has ended. A held SYN
// would reach the server only now, so the gate retries.
func (c *conn) waitForHold() (retry bool) {
	for d := 0; d < len(c.pumps); {
		s := c.pumps[d].dir.current.Load()
		if s.rule.Mode != cluster.Hold && s.rule.Mode != cluster.Drop {
			d++
			continue
		}
		retry = s.rule.Mode == cluster.Hold
		select {
		case <-s.changed:
		case <-c.ctx.Done():
			return false
		}
	}
	return retry
}

// reset resets the connection; by is the direction whose rule requires it, nil if
// none. With a linger of zero the kernel sends RST instead of FIN and keeps no
// TIME_WAIT sockets, of which a thousand clients would leave many.
func (c *conn) reset(by *direction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if by != nil {
		by.resets.Add(1)
	}
	c.cancel()
	for _, socket := range []*net.TCPConn{c.client, c.server} {
		if socket != nil {
			_ = socket.SetLinger(0)
			_ = socket.Close()
		}
	}
}
