package process

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/format"
)

// zkReader is the harness's own session at one ZooKeeper server, past the gate. It speaks enough of the protocol
// (zookeeper.jute) to read, and bounds every wait. It may be used concurrently; exchanges are serialized. The server
// ends the session's connection when it is no longer leader or follower, so the role is read once per connection.
type zkReader struct {
	addr  string
	mutex chan struct{} // capacity 1: full while unlocked
	conn  net.Conn      // nil: not connected
	in    *bufio.Reader
	is    string // role on this connection
	xid   int32
}

func newZKReader(addr string) *zkReader {
	r := &zkReader{addr: addr, mutex: make(chan struct{}, 1)}
	r.mutex <- struct{}{}
	return r
}

// Of the protocol.
const (
	opDelete       = 2
	opGetData      = 4
	opSync         = 9
	opGetChildren2 = 12
	errNoNode      = -101
	maxReply       = 16 << 20 // bytes
	passwordSize   = 16
)

// readerSession is the timeout of the sessions. A lost connection is not resumed, so it ends what is left of them.
const readerSession = 10 * time.Second

// fourLetters is the reply to a command such as srvr (ZooKeeper administrator's guide, four letter words).
func fourLetters(ctx context.Context, addr, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, command); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(io.LimitReader(conn, maxReply))
	return string(reply), err
}

// modes are the roles in the vocabulary of samples, by what srvr prints.
func modes(mode string) string {
	switch mode {
	case "leader", "standalone":
		return "master"
	case "follower":
		return "slave"
	}
	return ""
}

// locked calls do with a connection, alone. An error closes it; the next call opens another.
func (r *zkReader) locked(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	select {
	case <-r.mutex:
		defer func() { r.mutex <- struct{}{} }()
	case <-ctx.Done():
		return fmt.Errorf("reading from %s: %w", r.addr, ctx.Err())
	}
	err := r.connect(ctx)
	if err == nil {
		conn := r.conn // the function may run after drop has cleared the field
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		err = do(ctx)
		if !stop() && err == nil { // the deadline is, or will be, set: the connection is unusable
			err = ctx.Err()
		}
	}
	if err != nil {
		r.drop()
		if ctx.Err() != nil { // the cause: do sees only the closed connection
			err = ctx.Err()
		}
		return fmt.Errorf("reading from %s: %w", r.addr, err)
	}
	return nil
}

// connect begins a session unless there is one, and reads the role.
func (r *zkReader) connect(ctx context.Context) error {
	if r.conn != nil {
		return nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", r.addr)
	if err != nil {
		return err
	}
	r.conn, r.in = conn, bufio.NewReader(conn)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var b jute.Message
	b.AppendInt(0) // protocol version
	b.AppendLong(0)
	b.AppendInt(int32(readerSession.Milliseconds()))
	b.AppendLong(0) // a new session
	b.AppendBytes(make([]byte, passwordSize))
	b.AppendBool(false) // not read-only
	if err := r.send(b); err != nil {
		return err
	}
	if _, err := r.receive(); err != nil {
		return err
	}
	text, err := fourLetters(ctx, r.addr, "srvr")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(text, "Mode: ")
	mode, _, _ := strings.Cut(rest, "\n")
	if r.is = modes(mode); r.is == "" {
		return fmt.Errorf("it serves no clients: srvr says %.60q", text)
	}
	return nil
}

func (r *zkReader) send(body jute.Message) error {
	_, err := r.conn.Write(body.Frame())
	return err
}

func (r *zkReader) receive() (jute.Message, error) {
	var size [4]byte
	if _, err := io.ReadFull(r.in, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxReply {
		return nil, fmt.Errorf("a reply of %d bytes", n)
	}
	body := make(jute.Message, n)
	_, err := io.ReadFull(r.in, body)
	return body, err
}

// ask sends one request for each path and reads the replies; the body is nil where the node does not exist. The zxid is
// that of the last write that the server has applied.
func (r *zkReader) ask(op int32, paths []string) (bodies []jute.Message, zxid int64, err error) {
	for _, path := range paths {
		var b jute.Message
		r.xid++
		b.AppendInt(r.xid)
		b.AppendInt(op)
		b.AppendString(path)
		switch op {
		case opSync:
		case opDelete:
			b.AppendInt(-1) // any version
		default:
			b.AppendBool(false) // no watch
		}
		if err := r.send(b); err != nil {
			return nil, 0, err
		}
	}
	bodies = make([]jute.Message, len(paths))
	for i := range paths {
		body, err := r.receive()
		if err != nil {
			return nil, 0, err
		}
		_, at, code := body.Int(), body.Long(), body.Int()
		switch zxid = at; code {
		case 0:
			bodies[i] = body
		case errNoNode:
		default:
			return nil, 0, fmt.Errorf("reading %s: error %d", paths[i], code)
		}
	}
	return bodies, zxid, nil
}

// nodes are the names below each node below root, by its name, with every write that was committed before: a follower
// may be behind, and would show what was removed just now as left behind.
func (r *zkReader) nodes(ctx context.Context, root string) (nodes map[string][]string, err error) {
	err = r.locked(ctx, func(context.Context) error {
		if _, _, err := r.ask(opSync, []string{root}); err != nil {
			return err
		}
		lists, _, err := r.list([]string{root})
		if err != nil {
			return err
		}
		below, _, err := r.list(format.Texts(lists[0], func(name string) string { return root + "/" + name }))
		nodes = make(map[string][]string, len(below))
		for i, names := range below {
			nodes[lists[0][i]] = names
		}
		return err
	})
	return nodes, err
}

func (r *zkReader) list(paths []string) (names [][]string, zxid int64, err error) {
	bodies, zxid, err := r.ask(opGetChildren2, paths)
	if err != nil {
		return nil, 0, err
	}
	names = make([][]string, len(bodies))
	for i := range bodies {
		if bodies[i] == nil {
			continue
		}
		for range bodies[i].Int() {
			names[i] = append(names[i], string(bodies[i].Bytes()))
		}
	}
	return names, zxid, nil
}

// sample is the role of the server, and the first nodes of locks, by key: the holders of mutexes. Keys without nodes
// are left out. The error says why the server does not serve clients. It always asks the server something: only then
// a connection that the server has ended is noticed.
func (r *zkReader) sample(ctx context.Context, keys []string) (s history.Sample, err error) {
	paths := []string{client.ZooKeeperRoot}
	for _, key := range keys {
		paths = append(paths, client.ZooKeeperRoot+"/"+key)
	}
	err = r.locked(ctx, func(context.Context) error {
		names, zxid, err := r.list(paths)
		if err != nil {
			return err
		}
		var held, holders []string // a key for each node that holds it
		states := map[string]history.KeyState{}
		for i, list := range names[1:] {
			state, nodes := cluster.QueueState(list)
			if len(list) > 0 {
				states[keys[i]] = state
			}
			for _, name := range nodes {
				held, holders = append(held, keys[i]), append(holders, paths[i+1]+"/"+name)
			}
		}
		bodies, _, err := r.ask(opGetData, holders)
		for i, body := range bodies {
			if body != nil { // nil: deleted meanwhile
				states[held[i]] = addHolder(states[held[i]], body)
			}
		}
		for key, state := range states { // in any order: they are independent
			if state.Owner == "" && state.Limit == 0 {
				delete(states, key)
			}
		}
		s = history.Sample{Up: true, Role: r.is, Offset: zxid}
		if len(states) > 0 {
			s.Keys = states
		}
		return err
	})
	return s, err
}

// deleteHeld deletes the nodes of the holders of a lock, and returns how many there were.
func (r *zkReader) deleteHeld(ctx context.Context, lock string) (deleted int, err error) {
	dir := client.ZooKeeperRoot + "/" + lock
	err = r.locked(ctx, func(context.Context) error {
		names, _, err := r.list([]string{dir})
		if err != nil {
			return err
		}
		_, paths := cluster.QueueState(names[0])
		for i, name := range paths {
			paths[i] = dir + "/" + name
		}
		bodies, _, err := r.ask(opDelete, paths)
		for _, body := range bodies {
			if body != nil { // nil: it was gone
				deleted++
			}
		}
		return err
	})
	return deleted, err
}

// addHolder adds what a reply to getData says, data and stat, to the state of a lock.
func addHolder(state history.KeyState, body jute.Message) history.KeyState {
	owner, czxid := body.Text(), body.Long()
	for range 3 { // mzxid, ctime, mtime
		body.Long()
	}
	for range 3 { // versions
		body.Int()
	}
	return cluster.AddHolder(state, owner, czxid, body.Long())
}

// drop closes the connection. The caller holds the mutex.
func (r *zkReader) drop() {
	if r.conn != nil {
		_ = r.conn.Close()
		r.conn, r.in, r.is = nil, nil, ""
	}
}

// close closes the connection; the next read opens another. A nil reader has none.
func (r *zkReader) close() {
	if r == nil {
		return
	}
	<-r.mutex
	r.drop()
	r.mutex <- struct{}{}
}
