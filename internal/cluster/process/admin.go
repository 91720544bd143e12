package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// commandWait bounds one exchange if the context has no earlier deadline. The servers
	// are on this machine; one that does not reply within this time hangs.
	commandWait = time.Second

	maxBulk  = 64 << 20 // bytes of one string
	maxItems = 1 << 20  // of one array
)

// admin is the harness's own connection to one server, past the gate. It speaks
// enough of RESP2 to send commands in one round trip, and bounds every wait. It
// may be used concurrently; exchanges are serialised.
type admin struct {
	addr   string        // host:port, or the path of a Unix socket
	source string        // IP to connect from; empty: any
	mutex  chan struct{} // capacity 1: full while unlocked
	conn   net.Conn      // nil: not connected
	in     *bufio.Reader
}

// replyError is an error reply of the server.
type replyError string

func (e replyError) Error() string { return string(e) }

func newAdmin(addr string) *admin {
	a := &admin{addr: addr, mutex: make(chan struct{}, 1)}
	a.mutex <- struct{}{}
	return a
}

// do sends commands in one round trip and returns a reply for each: string, int64,
// nil, []any or replyError. The error is about the connection, which is then closed;
// the next call opens another.
func (a *admin) do(ctx context.Context, commands ...[]string) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
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
	var b strings.Builder
	for _, words := range commands {
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	if _, err := io.WriteString(a.conn, b.String()); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = readReply(a.in); err != nil {
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

var errProtocol = errors.New("unexpected reply")

// readReply reads one reply of RESP2.
func readReply(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if len(line) == 0 {
		return nil, errProtocol
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return replyError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %q", errProtocol, line)
	case kind == ':':
		return n, nil
	case n == -1:
		return nil, nil
	case kind == '$' && n >= 0 && n <= maxBulk:
		return readBulk(in, int(n))
	case kind == '*' && n >= 0 && n <= maxItems:
		return readArray(in, int(n))
	}
	return nil, fmt.Errorf("%w: %q", errProtocol, line)
}

func readBulk(in *bufio.Reader, n int) (any, error) {
	data := make([]byte, n+2)
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, err
	}
	return string(data[:n]), nil
}

func readArray(in *bufio.Reader, n int) (any, error) {
	var items []any
	for range n {
		item, err := readReply(in)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
