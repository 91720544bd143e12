// Package gate is a TCP relay that stands in front of one server and does to
// the bytes what a bad network does: delays them, holds them back and delivers
// them late, loses them, or cuts the line - for one caller and not another, in
// one direction and not the other. It is not a packet filter: it needs no
// rights, and it cannot lose a single packet of a connection that goes on
// (TCP would send that again); but it can lose a published message of one, as
// nobody but the subscriber would ever notice.
//
// Read [Gate] first. Callers are told apart by the address they call from.
//
// What a caller sees differs from a broken network in this: connecting succeeds
// at once, because the kernel answers for the gate. Under [cluster.Cut] the
// connection is reset right after; a held one is silent. To be refused for
// certain, as by a server that does not run, see [Gate.Refuse].
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

// Config is what a gate stands in front of.
type Config struct {
	Listen   string                  // host:port that callers know; port 0: any free one
	Target   string                  // host:port of the server
	Identify func(netip.Addr) string // names a caller by its address; nil: the address in text
}

// Gate is one listener in front of one server. Its methods may be called from
// several goroutines. Close ends every connection and goroutine of it.
type Gate struct {
	identify func(netip.Addr) string
	addr     *net.TCPAddr
	tasks    sync.WaitGroup

	mu       sync.Mutex
	target   string
	closed   bool
	listener *net.TCPListener // nil while refusing
	callers  map[string]*caller
	defaults [2]cluster.Rule // for callers not seen yet
}

// caller is everything between one caller and the server.
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
		identify = netip.Addr.String
	}
	g := &Gate{target: cfg.Target, identify: identify, addr: addr, callers: map[string]*caller{}}
	if err := g.Admit(); err != nil {
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

// Admit listens again after Refuse; if the gate listens already, it does nothing.
func (g *Gate) Admit() error {
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
	g.addr = listener.Addr().(*net.TCPAddr) // port 0 has become a port
	g.tasks.Go(func() { g.accept(listener) })
	return nil
}

// Refuse stops listening, so that every new caller is refused by the kernel, as
// on a machine where the server does not run, whatever the rules. Open
// connections go on.
func (g *Gate) Refuse() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		return nil
	}
	err := g.listener.Close()
	g.listener = nil
	return err
}

// Redirect has the gate stand in front of another server from now on, as a
// service address that moves: open connections are reset, and whoever connects
// again reaches the new one. Rules and counts stay.
func (g *Gate) Redirect(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
	for _, from := range g.callers {
		for c := range from.conns {
			c.reset(nil)
		}
	}
}

// Close ends every connection, frees the address and waits for the gate's
// goroutines. It may be called twice.
func (g *Gate) Close() error {
	err := g.Refuse()
	g.mu.Lock()
	g.closed = true
	for _, from := range g.callers {
		for c := range from.conns {
			c.reset(nil)
		}
	}
	g.mu.Unlock()
	g.tasks.Wait()
	return err
}

// SetRule puts rule in force for what comes from caller from, or from
// everybody ([cluster.Any], which also replaces earlier rules for single
// callers), on open and on future connections. Every byte that is sent after
// SetRule has returned is under the new rule.
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

// Traffic sums up what has been done to the bytes of caller from, or of all
// callers ([cluster.Any]).
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

// caller finds or makes the caller of that name. g.mu is held.
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

// set puts a rule in force and resets the connections that cannot go on under
// it: all if the line is cut, those with a hole in them if bytes pass again.
func (c *caller) set(d int, rule cluster.Rule) {
	l := &c.directions[d]
	l.set(rule)
	for conn := range c.conns {
		doomed := rule.Mode == cluster.Cut || rule.Mode == cluster.Pass && conn.pumps[d].lost.Load()
		if doomed {
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
		if err != nil { // out of file descriptors: wait for some to come back
			time.Sleep(5 * time.Millisecond)
			continue
		}
		c, from := g.admit(client)
		if c == nil {
			continue
		}
		g.tasks.Go(func() {
			c.serve()
			g.mu.Lock()
			delete(from.conns, c)
			g.mu.Unlock()
		})
	}
}

// admit registers a new connection, or resets it and answers nil.
func (g *Gate) admit(client *net.TCPConn) (*conn, *caller) {
	var name string
	if addr, err := netip.ParseAddrPort(client.RemoteAddr().String()); err == nil {
		name = g.identify(addr.Addr().Unmap())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	from := g.caller(name)
	from.count++
	c := newConn(client, &from.directions, from.count)
	for d := range from.directions {
		if from.directions[d].rule().Mode == cluster.Cut {
			c.reset(&from.directions[d])
			return nil, nil
		}
	}
	if g.closed {
		c.reset(nil)
		return nil, nil
	}
	c.target = g.target
	from.conns[c] = struct{}{}
	return c, from
}

// newConn makes the connection of a caller that was just accepted, its number so many.
func newConn(client *net.TCPConn, directions *[2]direction, number uint64) *conn {
	c := &conn{client: client}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for d := range c.pumps {
		c.pumps[d] = pump{conn: c, dir: &directions[d], peer: &c.pumps[1-d], number: 2*number + uint64(d),
			more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	}
	c.pumps[1].messages = new(pubsub.Filter)
	return c
}
