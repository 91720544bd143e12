// Package line is the harness's own connection to one server, past the gates: every wait is bounded, and a connection
// on which an exchange failed is replaced. Read [Line] first.
package line

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

// Wait bounds one exchange if the context has no earlier deadline. The servers are on this machine; one that does not
// reply within this time, which is longer than most stalls of a busy machine, hangs.
const Wait = 5 * time.Second

// Line is the connection to one server. It may be used concurrently; exchanges are serialized.
type Line struct {
	Addr   string        // host:port, or the path of a Unix socket
	Source string        // IP to connect from; empty: any
	Wait   time.Duration // bounds one exchange
	Conn   net.Conn      // for the function given to Alone; nil: not connected
	In     *bufio.Reader // of Conn

	mutex chan struct{} // capacity 1: full while unlocked
}

// New returns a line to addr, which connects when it is first used.
func New(addr string) Line {
	l := Line{Addr: addr, Wait: Wait, mutex: make(chan struct{}, 1)}
	l.mutex <- struct{}{}
	return l
}

// Alone calls do with a connection, which may be fresh. An error closes it; the next call opens another.
func (l *Line) Alone(ctx context.Context, doing string, do func(ctx context.Context, fresh bool) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.Wait)
	defer cancel()
	select {
	case <-l.mutex:
		defer func() { l.mutex <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", doing, l.Addr, ctx.Err())
	}
	err := l.connected(ctx, do)
	if err != nil {
		l.drop()
		if ctx.Err() != nil { // the cause: do sees only the closed connection
			err = ctx.Err()
		}
		return fmt.Errorf("%s %s: %w", doing, l.Addr, err)
	}
	return nil
}

func (l *Line) connected(ctx context.Context, do func(ctx context.Context, fresh bool) error) (err error) {
	fresh := l.Conn == nil
	if fresh {
		if l.Conn, err = Dial(ctx, l.Addr, l.Source); err != nil {
			return err
		}
		l.In = bufio.NewReader(l.Conn)
	}
	stop := Limit(ctx, l.Conn)
	defer stop()
	if err := do(ctx, fresh); err != nil {
		return err
	}
	if !stop() { // the deadline is, or will be, set: the connection is unusable
		return ctx.Err()
	}
	return nil
}

// Dial connects to host:port, or to a Unix socket, from an IP (empty: any).
func Dial(ctx context.Context, addr, source string) (net.Conn, error) {
	var dialer net.Dialer
	if source != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	network := "tcp"
	if filepath.IsAbs(addr) {
		network = "unix"
	}
	return dialer.DialContext(ctx, network, addr)
}

// Limit makes reads and writes fail when ctx ends. stop ends that; false: they fail already.
func Limit(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// drop closes the connection. The caller holds the mutex.
func (l *Line) drop() {
	if l.Conn != nil {
		_ = l.Conn.Close()
		l.Conn, l.In = nil, nil
	}
}

// Close closes the connection; the next exchange opens another.
func (l *Line) Close() {
	<-l.mutex
	l.drop()
	l.mutex <- struct{}{}
}
