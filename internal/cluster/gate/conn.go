package gate

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// dialTimeout bounds the gate's own connection attempt. A server on the same machine
// reaches it only if it hangs and its backlog is full.
const dialTimeout = 10 * time.Second

// Conn is a connection to a server: TCP, or TLS above it.
type Conn interface {
	net.Conn
	CloseWrite() error
}

// Dialer connects to a server, ready for the caller's first byte: a TLS handshake, or an
// authentication in the caller's place, is complete.
type Dialer func(ctx context.Context) (Conn, error)

// tcpTo dials host:port, and nothing more.
func tcpTo(target string) Dialer {
	return func(ctx context.Context) (Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", target)
		if err != nil {
			return nil, err
		}
		return conn.(*net.TCPConn), nil
	}
}

// conn is one connection through the gate: two sockets, two pumps.
type conn struct {
	client *net.TCPConn
	dialer Dialer
	late   bool // see [Config].Late
	pumps  [2]pump
	ctx    context.Context // done when the connection is over
	cancel context.CancelFunc

	mu     sync.Mutex
	server Conn // nil until connected
	ended  bool
}

// serve relays until both sides have ended, or the connection is reset.
func (c *conn) serve() {
	defer c.reset(nil) // frees the sockets, after both sides have ended
	if !c.connect() {
		return
	}
	c.pumps[0].src, c.pumps[0].dst = c.client, c.server
	c.pumps[1].src, c.pumps[1].dst = c.server, c.client
	var both sync.WaitGroup
	both.Go(c.pumps[0].run)
	both.Go(c.pumps[1].run)
	both.Wait()
	for d := range c.pumps {
		p := &c.pumps[d]
		p.dir.waiting.Add(-p.held.Swap(0)) // the bytes that were never delivered
	}
}

// connect connects to the server, if need be after a rule that holds bytes has ended.
func (c *conn) connect() bool {
	for first := time.Now(); !c.late || c.waitToDial(); {
		switch {
		case c.dial():
			return true
		case c.waitForHold():
		case !c.late || time.Since(first) > lateTries || !c.sleep(lateEvery):
			return false
		}
	}
	return false
}

func (c *conn) dial() bool {
	ctx, cancel := context.WithTimeout(c.ctx, dialTimeout)
	defer cancel()
	server, err := c.dialer(ctx)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = server.Close()
		return false
	}
	c.server = server
	return true
}

// How long, and how often, a late connection is tried again; see [Config].Late.
const (
	lateTries = time.Second
	lateEvery = 5 * time.Millisecond
)

func (c *conn) sleep(d time.Duration) (whole bool) {
	select {
	case <-time.After(d):
		return true
	case <-c.ctx.Done():
		return false
	}
}

// waitToDial waits until no rule holds the caller's bytes. False: the connection is over, also because the caller has
// given up meanwhile.
func (c *conn) waitToDial() bool {
	waited := false
	for {
		s := c.pumps[0].dir.current.Load()
		if s.rule.Mode != cluster.Hold && s.rule.Mode != cluster.Drop {
			return !waited || !peerClosed(c.client)
		}
		waited = true
		select {
		case <-s.changed:
		case <-c.ctx.Done():
			return false
		}
	}
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
	for _, socket := range []Conn{c.client, c.server} {
		if socket != nil {
			abort(socket)
		}
	}
}

// abort closes a connection at once, below TLS too: its closing message would wait for the peer.
func abort(socket net.Conn) {
	if secure, ok := socket.(interface{ NetConn() net.Conn }); ok {
		socket = secure.NetConn()
	}
	if tcp, ok := socket.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = socket.Close()
}
