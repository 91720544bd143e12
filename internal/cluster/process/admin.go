package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// commandWait bounds one exchange if the context has no earlier deadline. The servers
// are on this machine; one that does not reply within this time hangs.
const commandWait = time.Second

// admin is the harness's own connection to one server, past the gate. It speaks
// enough of RESP2 to send commands in one round trip, and bounds every wait. It
// may be used concurrently; exchanges are serialized.
type admin struct {
	addr     string        // host:port, or the path of a Unix socket
	password string        // empty: none
	source   string        // IP to connect from; empty: any
	wait     time.Duration // bounds one exchange
	mutex    chan struct{} // capacity 1: full while unlocked
	conn     net.Conn      // nil: not connected
	in       *bufio.Reader
}

func newAdmin(addr, password string) *admin {
	a := &admin{addr: addr, password: password, wait: commandWait, mutex: make(chan struct{}, 1)}
	a.mutex <- struct{}{}
	return a
}

// do sends commands in one round trip and returns a reply for each: string, int64,
// nil, []any or [resp.Error]. The error is about the connection, which is then closed;
// the next call opens another.
func (a *admin) do(ctx context.Context, commands ...[]string) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	select {
	case <-a.mutex:
		defer func() { a.mutex <- struct{}{} }()
	case <-ctx.Done():
		return nil, fmt.Errorf("sending a command to %s: %w", a.addr, ctx.Err())
	}
	replies, err := a.exchange(ctx, commands)
	if err != nil {
		a.drop()
		if ctx.Err() != nil { // the cause: exchange sees only the closed connection
			err = ctx.Err()
		}
		return nil, fmt.Errorf("sending a command to %s: %w", a.addr, err)
	}
	return replies, nil
}

func (a *admin) exchange(ctx context.Context, commands [][]string) ([]any, error) {
	authenticates := a.conn == nil && a.password != ""
	if a.conn == nil {
		var dialer net.Dialer
		if a.source != "" {
			dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(a.source)}
		}
		network := "tcp"
		if filepath.IsAbs(a.addr) {
			network = "unix"
		}
		conn, err := dialer.DialContext(ctx, network, a.addr)
		if err != nil {
			return nil, err
		}
		a.conn, a.in = conn, bufio.NewReader(conn)
	}
	conn := a.conn // the function may run after drop has cleared the field
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var b []byte
	if authenticates {
		b = resp.AppendStrings(b, "AUTH", a.password)
	}
	for _, words := range commands {
		b = resp.AppendStrings(b, words...)
	}
	if _, err := a.conn.Write(b); err != nil {
		return nil, err
	}
	if authenticates {
		if reply, err := resp.Read(a.in); err != nil || reply != "OK" {
			return nil, errors.Join(err, fmt.Errorf("authenticating: %v", reply))
		}
	}
	replies := make([]any, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = resp.Read(a.in); err != nil {
			return nil, err
		}
	}
	if !stop() { // the deadline is, or will be, set: the connection is unusable
		return nil, ctx.Err()
	}
	return replies, nil
}

// drop closes the connection. The caller holds the mutex.
func (a *admin) drop() {
	if a.conn != nil {
		_ = a.conn.Close()
		a.conn, a.in = nil, nil
	}
}

// close closes the connection; the next command opens another.
func (a *admin) close() {
	<-a.mutex
	a.drop()
	a.mutex <- struct{}{}
}
