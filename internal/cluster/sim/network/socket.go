package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// socket is a client's end of a connection, a [net.Conn].
type socket struct {
	actor  *Actor
	conn   *Conn
	local  net.Addr
	remote net.Addr
	frames *zkFrames // of a ZooKeeper client; nil: of another

	// Guarded by world.mu, as everything else of the world.
	changed     sleeper
	opened      bool
	buf         []byte
	err         error // refused, reset, io.EOF
	errReturned bool  // err was returned by Read
	closed      bool

	readBy  time.Time // zero: none
	writeBy time.Time
	alarmAt int64 // instant of the earliest alarm; never: none
}

// Dial connects to a server of the cluster; addr is one of [client.Endpoints], or one from a redirection. It may be
// used as go-redis' Options.Dialer. As on a real network, a server that is down refuses, a paused one accepts and
// never replies, and in a partition Dial waits until it heals or ctx ends. If ctx has ended, Dial returns at once.
func (a *Actor) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.world.Mu.Lock()
	defer a.world.Mu.Unlock()
	a.order(addr, dialStack())
	if addr == MasterAddr && len(a.world.Sentinels.Hosts) > 0 {
		return a.dialMaster(ctx, network)
	}
	s, err := a.dial(ctx, network, addr)
	if err != nil {
		return nil, err // not a nil socket in an interface
	}
	return s, nil
}

// dialStack is the call stack of Dial: two goroutines of one client that dial at one instant, such as a subscription
// and a command, differ in it.
func dialStack() func() string {
	var stack [32]uintptr
	n := runtime.Callers(3, stack[:])
	return func() string {
		var key []string
		for frames, more := runtime.CallersFrames(stack[:n]), true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			key = append(key, fmt.Sprint(f.Function, f.Line))
		}
		return strings.Join(key, " ")
	}
}

// dial connects to addr; the world is locked, but not while it waits.
func (a *Actor) dial(ctx context.Context, network, addr string) (*socket, error) {
	w := a.world
	s := &socket{actor: a, alarmAt: Never, remote: address(addr)}
	s.changed.init(w)
	h := w.reach(addr, a.name)
	if h == nil || w.Closed || a.dead {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: s.remote,
			Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	}
	if w.ZooKeeper {
		s.frames = &zkFrames{socket: s, numbers: map[int32]int32{}}
	}
	s.conn = a.connect(h, s)
	s.local = address(s.conn.Source)
	wake := context.AfterFunc(ctx, func() {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		w.at(w.Slots.snap(w.Now()+1, s.slot()), s.rank(), call(s.wake))
	})
	defer wake()
	for !s.opened && s.err == nil && ctx.Err() == nil && !w.Closed {
		w.wait(&s.changed)
	}
	a.awaitThaw(s.slot())
	switch {
	case s.err != nil:
		return nil, s.failure("dial", "connect")
	case !s.opened:
		s.shut()
		err := ctx.Err()
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			err = os.ErrDeadlineExceeded // a net.Error with Timeout, as in package net
		}
		return nil, &net.OpError{Op: "dial", Net: network, Source: s.local, Addr: s.remote, Err: err}
	}
	return s, nil
}

// addr is the address under which h sees the actor's k-th connection.
func (a *Actor) addr(h *Host, k int) string {
	return fmt.Sprintf("10.%d.%d.%d:%d", 100+a.slot>>16, a.slot>>8&0xff, a.slot&0xff, 20000+1000*h.Index+k%1000)
}

// failure is s.err as package net returns it.
func (s *socket) failure(op, call string) error {
	err := s.err
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(call, number)
	}
	return &net.OpError{Op: op, Net: "tcp", Source: s.local, Addr: s.remote, Err: err}
}

func (s *socket) Ready() (*Waiters, int64) { return s.actor.Ready() }

func (s *socket) Receive(seg Segment) {
	switch seg.Kind {
	case Accepted:
		s.opened = true
	case payload:
		if s.frames != nil {
			s.frames.read(seg.Data)
		}
		if len(s.buf) > 0 {
			s.buf = append(s.buf, seg.Data...)
		} else {
			s.buf = slices.Clip(seg.Data) // nobody else uses it from now on
		}
	}
	s.wake()
}

func (s *socket) Broken(err error) {
	if s.err == nil {
		s.err = err
	}
	s.wake()
}

// Read waits for bytes, the end of the connection, or the deadline. On a connection that has ended before, it fails
// at the connection's next turn: a client that sees five of them fail at one instant would handle them in the order
// in which Go runs its goroutines.
func (s *socket) Read(b []byte) (int, error) {
	w := s.actor.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	turn := int64(0)
	if s.err != nil && len(s.buf) == 0 {
		turn = w.Slots.snap(w.Now()+1, s.slot())
		w.at(turn, s.rank(), call(s.wake))
	}
	for {
		s.actor.awaitThaw(s.slot())
		switch {
		case s.closed || w.Closed:
			return 0, s.closedError("read")
		case len(s.buf) > 0:
			n := copy(b, s.buf)
			if s.buf = s.buf[n:]; len(s.buf) == 0 {
				s.buf = nil
			}
			return n, nil
		case s.err != nil && w.Now() >= turn:
			s.errReturned = true
			return 0, s.failure("read", "read")
		case len(b) == 0:
			return 0, nil
		case expired(s.readBy):
			return 0, s.deadlineError("read")
		}
		s.alarm(s.readBy)
		w.wait(&s.changed)
	}
}

// Write sends b. It never blocks: the kernel's buffers are larger than a client's requests. The writes of a frozen
// client leave when it thaws; Write still returns immediately, because its caller may hold a mutex that another
// goroutine of the client waits for, and virtual time would stall. Until Read has returned the error of a broken
// connection, writes to it are lost without an error, as if the kernel had not detected it yet.
func (s *socket) Write(b []byte) (int, error) {
	w := s.actor.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	switch {
	case s.closed || w.Closed:
		return 0, s.closedError("write")
	case expired(s.writeBy):
		return 0, s.deadlineError("write")
	case s.errReturned && errors.Is(s.err, io.EOF):
		return 0, &net.OpError{Op: "write", Net: "tcp", Source: s.local, Addr: s.remote,
			Err: os.NewSyscallError("write", syscall.EPIPE)}
	case s.errReturned:
		return 0, s.failure("write", "write")
	case s.err != nil:
		return len(b), nil
	}
	if s.frames != nil {
		s.frames.write(b)
		return len(b), nil
	}
	s.send(Segment{Data: append([]byte(nil), b...), Size: int64(len(b))})
	return len(b), nil
}

// send sends seg after all goroutines of this instant have blocked: several may send, over a link whose throughput
// is limited or under one priority, and Go runs them in random order.
func (s *socket) send(seg Segment) {
	s.actor.world.at(s.actor.world.Now(), s.conn.Flows[Forward].rank(), &unsent{s, seg})
}

// unsent are bytes that a client has written. If the client is frozen, they leave when it thaws.
type unsent struct {
	socket *socket
	Segment
}

func (u *unsent) Fire() {
	a := u.socket.actor
	if a.frozen {
		a.deferred = append(a.deferred, u)
		return
	}
	u.Retry()
}

func (u *unsent) Retry() { u.socket.conn.Send(Forward, u.Segment) }

// Close ends the connection: sent bytes still arrive.
func (s *socket) Close() error {
	w := s.actor.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if s.closed {
		return s.closedError("close")
	}
	s.shut()
	return nil
}

func (s *socket) shut() {
	s.closed = true
	s.buf = nil
	s.send(Segment{Kind: Finished})
	s.wake()
}

// alarm wakes the reader at an instant. Most sockets have at most one alarm: a later deadline waits for the earlier
// alarm.
func (s *socket) alarm(t time.Time) {
	w := s.actor.world
	if t.IsZero() {
		return
	}
	at := w.Slots.snap(max(int64(t.Sub(w.epoch)), w.Now()), s.slot())
	if at >= s.alarmAt {
		return
	}
	s.alarmAt = at
	w.at(at, s.rank(), s)
}

// slot is the slot of the connection's reader.
func (s *socket) slot() int { return s.conn.Flows[Back].slot }

func (s *socket) rank() int64 { return s.conn.Flows[Back].rank() }

// wake wakes the reader.
func (s *socket) wake() { s.actor.world.wake(&s.changed) }

// Fire is the alarm.
func (s *socket) Fire() {
	s.alarmAt = Never
	if s.closed || s.err != nil {
		return
	}
	if s.actor.frozen {
		s.actor.deferred = append(s.actor.deferred, s)
		return
	}
	if expired(s.readBy) {
		s.wake()
		return
	}
	s.alarm(s.readBy)
}

// Retry is an alarm that fired while the client was frozen.
func (s *socket) Retry() { s.alarm(s.readBy) }

// nextTurn is the instant of the connection's slot after t, unless t has passed. A deadline is often a context's too:
// the reader would wake at the instant at which the context ends, in random order.
func (s *socket) nextTurn(t time.Time) time.Time {
	if t.IsZero() || expired(t) {
		return t
	}
	w := s.actor.world
	return w.epoch.Add(time.Duration(w.Slots.snap(int64(t.Sub(w.epoch))+1, s.conn.Flows[Back].slot)))
}

func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (s *socket) closedError(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Source: s.local, Addr: s.remote, Err: net.ErrClosed}
}

func (s *socket) deadlineError(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Source: s.local, Addr: s.remote, Err: os.ErrDeadlineExceeded}
}

// LocalAddr is an address that identifies the client.
func (s *socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr is the server's.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// SetDeadline sets both deadlines.
func (s *socket) SetDeadline(t time.Time) error {
	_ = s.SetWriteDeadline(t)
	return s.SetReadDeadline(t)
}

// SetReadDeadline sets the deadline of every Read, also of a blocked one.
func (s *socket) SetReadDeadline(t time.Time) error {
	w := s.actor.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	s.readBy = s.nextTurn(t)
	s.wake()
	return nil
}

// SetWriteDeadline sets the deadline of every Write.
func (s *socket) SetWriteDeadline(t time.Time) error {
	w := s.actor.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	s.writeBy = s.nextTurn(t)
	return nil
}

// address is a TCP address, because programs expect one of a connection.
func address(addr string) net.Addr {
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return text(addr)
}

// text is an address that is not an IP address and a port.
type text string

// Network is the network of the simulation.
func (text) Network() string { return "tcp" }

func (t text) String() string { return string(t) }

var _ net.Conn = (*socket)(nil)
