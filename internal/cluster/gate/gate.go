// Package gate is a TCP relay in front of one server that imitates a bad network: it
// delays bytes, holds them and delivers them late, drops them, or resets connections,
// per caller and per direction. It is not a packet filter: it needs no privileges, and
// it cannot lose a single packet of a connection that continues (TCP would retransmit
// it). It can drop a published message, which only the subscriber could notice.
//
// Read [Gate] first. Callers are identified by their address.
//
// A caller can see one difference from a broken network: connecting succeeds at once, because the kernel accepts the
// connection for the gate. Under [cluster.Cut] the connection is reset right after; under [cluster.Hold] it hangs. To
// refuse connections, as a host without a server does, see [Gate.Refuse].
package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/pubsub"
)

// Config describes the server behind a gate.
type Config struct {
	Listen string // host:port that callers know; port 0: any free one
	Target string // host:port of the server
	Dial   Dialer // used instead of TCP to Target; nil: TCP
	// Identify names a caller by its address, when it connects; nil: the IP address in text.
	Identify func(netip.AddrPort) string
	// Admit decides whether a connection from that address to the gate's is served, or reset at once; nil: all are served.
	Admit func(from, gate netip.AddrPort) bool
	// Late connects to the server only when no rule keeps bytes of the caller, and tries again for a second while the
	// server refuses. Members of a ZooKeeper ensemble need it: a member that accepts a connection waits for its first
	// bytes and serves no other meanwhile, and a connection that is accepted and then closed starts another election.
	Late bool
	// First is called with the first bytes of each connection that its caller sends, and may change them; nil: no call.
	First func([]byte)
}

// Gate is one listener in front of one server. Its methods may be called concurrently.
// Close ends all its connections and goroutines.
type Gate struct {
	identify func(netip.AddrPort) string
	admits   func(from, gate netip.AddrPort) bool
	late     bool
	first    func([]byte)
	addr     *net.TCPAddr
	tasks    sync.WaitGroup
	ctx      context.Context // done when it is closed
	cancel   context.CancelFunc

	mu       sync.Mutex
	dialer   Dialer
	closed   bool
	listener *net.TCPListener // nil while refusing
	moved    *Gate            // serves new connections; nil: this gate does
	stale    string           // the caller whose connections former still serves; "": none
	former   *Gate            // served them before the last move; nil: none
	fronts   []*Gate          // gates whose address has moved to this one
	callers  map[string]*caller
	defaults [2]cluster.Rule // for callers not seen yet
}

// caller is the state of all connections from one caller.
type caller struct {
	directions [2]direction // forward, back
	conns      map[*conn]struct{}
	count      uint64 // of its connections so far
}

// Open starts listening.
func Open(cfg Config) (*Gate, error) {
	addr, err := net.ResolveTCPAddr("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("opening gate %s: %w", cfg.Listen, err)
	}
	identify := cfg.Identify
	if identify == nil {
		identify = func(from netip.AddrPort) string { return from.Addr().String() }
	}
	dial := cfg.Dial
	if dial == nil {
		dial = tcpTo(cfg.Target)
	}
	g := &Gate{
		dialer: dial, identify: identify, admits: cfg.Admit, late: cfg.Late, first: cfg.First, addr: addr,
		callers: map[string]*caller{},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if err := g.Admit(); err != nil {
		g.cancel()
		return nil, err
	}
	return g, nil
}

// Addr is where the gate listens, host:port.
func (g *Gate) Addr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addr.String()
}

// Admit listens again after Refuse; it does nothing if the gate is listening.
func (g *Gate) Admit() error { return g.eachAddress((*Gate).listen) }

// Refuse stops listening, so that the kernel refuses new connections, as on a host
// without a server, whatever the rules. Open connections continue.
func (g *Gate) Refuse() error { return g.eachAddress((*Gate).hangUp) }

func (g *Gate) listen() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.listener != nil {
		return nil
	}
	listener, err := net.ListenTCP("tcp", g.addr)
	if err != nil {
		return fmt.Errorf("opening gate %s: %w", g.addr, err)
	}
	g.listener = listener
	g.addr = listener.Addr().(*net.TCPAddr) // with the port that replaces port 0
	g.tasks.Go(func() { g.accept(listener) })
	return nil
}

func (g *Gate) hangUp() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		return nil
	}
	err := g.listener.Close()
	g.listener = nil
	return err
}

// Close ends every connection, frees the address and waits for the gate's
// goroutines. It may be called twice.
func (g *Gate) Close() error {
	err := g.hangUp()
	g.cancel()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.Reset(func(string) bool { return true })
	g.tasks.Wait()
	return err
}

// SetRule sets the rule for open and future connections of caller from, or of all
// callers ([cluster.Any], which replaces earlier rules for single callers). It
// applies to every byte that is sent after SetRule has returned.
func (g *Gate) SetRule(from string, dir cluster.Direction, rule cluster.Rule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for d := range 2 {
		if dir&(1<<d) == 0 {
			continue
		}
		if from != cluster.Any {
			g.caller(from).set(d, rule)
			continue
		}
		g.defaults[d] = rule
		for _, c := range g.callers {
			c.set(d, rule)
		}
	}
}

// Traffic is the sum of the counts of caller from, or of all callers ([cluster.Any]).
func (g *Gate) Traffic(from string, dir cluster.Direction) cluster.Traffic {
	g.mu.Lock()
	defer g.mu.Unlock()
	var sum cluster.Traffic
	for name, c := range g.callers {
		if from != cluster.Any && from != name {
			continue
		}
		for d := range c.directions {
			if dir&(1<<d) != 0 {
				c.directions[d].addTo(&sum)
			}
		}
	}
	return sum
}

// caller finds or creates the caller of that name. g.mu is held.
func (g *Gate) caller(name string) *caller {
	c := g.callers[name]
	if c == nil {
		c = &caller{conns: map[*conn]struct{}{}}
		for d := range c.directions {
			c.directions[d].set(g.defaults[d])
		}
		g.callers[name] = c
	}
	return c
}

// set sets a rule and resets the connections that cannot continue under it: all under Cut, the ones with lost bytes
// under Pass.
func (c *caller) set(d int, rule cluster.Rule) {
	l := &c.directions[d]
	for conn := range c.conns {
		if rule.Silent {
			conn.pumps[d].silent.Store(true) // before held bytes see the rule
		}
	}
	l.set(rule)
	for conn := range c.conns {
		if rule.Mode == cluster.Cut || rule.Mode == cluster.Pass && conn.pumps[d].lost.Load() {
			conn.reset(l)
		}
	}
}

func (g *Gate) accept(listener *net.TCPListener) {
	for {
		client, err := listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors: wait until some are closed
			time.Sleep(5 * time.Millisecond)
			continue
		}
		source, at := unmapped(client.RemoteAddr()), unmapped(client.LocalAddr())
		if g.admits != nil && !g.admits(source, at) {
			abort(client)
			continue
		}
		name := g.identify(source)
		g.leadsTo(name).serve(client, name)
	}
}

// serve serves a new connection of the caller of that name in the background, or resets it.
func (g *Gate) serve(client *net.TCPConn, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := g.caller(name)
	from.count++
	c := newConn(client, &from.directions, from.count)
	for d := range from.directions {
		if from.directions[d].rule().Mode == cluster.Cut {
			c.reset(&from.directions[d])
			return
		}
	}
	if g.closed {
		c.reset(nil)
		return
	}
	c.dialer, c.late, c.pumps[0].first = g.dialer, g.late, g.first
	if _, is := cluster.ClientNumber(name); is {
		c.pumps[0].copies = &copies{gate: g}
	}
	from.conns[c] = struct{}{}
	g.tasks.Go(func() {
		c.serve()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(from.conns, c)
	})
}

// unmapped is a TCP address; an IPv4 address that is mapped to IPv6 is converted back.
func unmapped(a net.Addr) netip.AddrPort {
	addr := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// newConn sets up an accepted connection; number counts its caller's connections.
func newConn(client *net.TCPConn, directions *[2]direction, number uint64) *conn {
	c := &conn{client: client}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for d := range c.pumps {
		c.pumps[d] = pump{conn: c, dir: &directions[d], peer: &c.pumps[1-d], dice: cluster.Dice{ID: 2*number + uint64(d)},
			more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	}
	c.pumps[1].messages = new(pubsub.Filter)
	return c
}
