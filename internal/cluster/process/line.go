package process

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

// commandWait bounds one exchange if the context has no earlier deadline. The servers are on this machine; a server
// that does not reply within this time hangs.
const commandWait = time.Second

// line is the harness's own connection to one server, past the gate. It bounds every wait. It may be used
// concurrently; exchanges are serialized.
type line struct {
	addr   string        // host:port, or the path of a Unix socket
	source string        // IP to connect from; empty: any
	wait   time.Duration // bounds one exchange
	mutex  chan struct{} // capacity 1: full while unlocked
	conn   net.Conn      // nil: not connected
	in     *bufio.Reader
}

func newLine(addr string) line {
	l := line{addr: addr, wait: commandWait, mutex: make(chan struct{}, 1)}
	l.mutex <- struct{}{}
	return l
}

// alone calls do with a connection, which may be fresh. An error closes it; the next call opens another.
func (l *line) alone(ctx context.Context, doing string, do func(ctx context.Context, fresh bool) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	select {
	case <-l.mutex:
		defer func() { l.mutex <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", doing, l.addr, ctx.Err())
	}
	err := l.connected(ctx, do)
	if err != nil {
		l.drop()
		if ctx.Err() != nil { // the cause: do sees only the closed connection
			err = ctx.Err()
		}
		return fmt.Errorf("%s %s: %w", doing, l.addr, err)
	}
	return nil
}

func (l *line) connected(ctx context.Context, do func(ctx context.Context, fresh bool) error) (err error) {
	fresh := l.conn == nil
	if fresh {
		if l.conn, err = dial(ctx, l.addr, l.source); err != nil {
			return err
		}
		l.in = bufio.NewReader(l.conn)
	}
	stop := limit(ctx, l.conn)
	defer stop()
	if err := do(ctx, fresh); err != nil {
		return err
	}
	if !stop() { // the deadline is, or will be, set: the connection is unusable
		return ctx.Err()
	}
	return nil
}

// dial connects to host:port, or to a Unix socket, from an IP (empty: any).
func dial(ctx context.Context, addr, source string) (net.Conn, error) {
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

// limit makes reads and writes fail when ctx ends. stop ends that; false: they fail already.
func limit(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// drop closes the connection. The caller holds the mutex.
func (l *line) drop() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn, l.in = nil, nil
	}
}

// close closes the connection; the next exchange opens another.
func (l *line) close() {
	<-l.mutex
	l.drop()
	l.mutex <- struct{}{}
}
