// Package zookeeperreader reads the locks of one ZooKeeper server for the harness, past its gate. It is no lock and no
// client under test.
//
// Read [Reader] first.
package zookeeperreader

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/cluster/line"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/topology"
)

// Reader is the harness's own session at one ZooKeeper server. It speaks enough of the protocol (zookeeper.jute) to
// read. The server ends the session's connection when it is no longer leader or follower, so the role is read once per
// connection.
type Reader struct {
	line line.Line
	is   string // role on this connection
	xid  int32
}

// New returns a reader of the server at addr, which connects when it is first used. The caller closes it.
func New(addr string) *Reader { return &Reader{line: line.New(addr)} }

// Of the protocol.
const (
	opDelete       = 2
	opGetData      = 4
	opSetACL       = 7
	opSync         = 9
	opGetChildren2 = 12
	errNoNode      = -101
	maxReply       = 16 << 20 // bytes
	passwordSize   = 16
)

// session is the timeout of the sessions. A lost connection is not resumed, so the timeout ends its session.
const session = 10 * time.Second

// FourLetters is the reply to a command such as srvr (ZooKeeper administrator's guide, four letter words).
func FourLetters(ctx context.Context, addr, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, line.Wait)
	defer cancel()
	conn, err := line.Dial(ctx, addr, "")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer line.Limit(ctx, conn)()
	if _, err := io.WriteString(conn, command); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(io.LimitReader(conn, maxReply))
	return string(reply), err
}

// modes are the roles in the vocabulary of samples, by the mode that srvr prints.
func modes(mode string) string {
	switch mode {
	case "leader", "standalone":
		return "master"
	case "follower":
		return "slave"
	}
	return ""
}

// locked calls do with a session, alone.
func (r *Reader) locked(ctx context.Context, do func() error) error {
	return r.line.Alone(ctx, "reading from", func(ctx context.Context, fresh bool) error {
		if fresh {
			if err := r.connect(ctx); err != nil {
				return err
			}
		}
		return do()
	})
}

// connect begins a session, and reads the role.
func (r *Reader) connect(ctx context.Context) error {
	var b jute.Message
	b.AppendInt(0) // protocol version
	b.AppendLong(0)
	b.AppendInt(int32(session.Milliseconds()))
	b.AppendLong(0) // a new session
	b.AppendBytes(make([]byte, passwordSize))
	b.AppendBool(false) // not read-only
	if err := r.send(b); err != nil {
		return err
	}
	if _, err := r.receive(); err != nil {
		return err
	}
	text, err := FourLetters(ctx, r.line.Addr, "srvr")
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

func (r *Reader) send(body jute.Message) error {
	_, err := r.line.Conn.Write(body.Frame())
	return err
}

func (r *Reader) receive() (jute.Message, error) {
	var size [4]byte
	if _, err := io.ReadFull(r.line.In, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxReply {
		return nil, fmt.Errorf("a reply of %d bytes", n)
	}
	body := make(jute.Message, n)
	_, err := io.ReadFull(r.line.In, body)
	return body, err
}

// exchange sends one request and reads the reply to it.
func (r *Reader) exchange(op int32, request jute.Message) (reply jute.Message, code int32, err error) {
	r.xid++
	var b jute.Message
	b.AppendInt(r.xid)
	b.AppendInt(op)
	if err := r.send(append(b, request...)); err != nil {
		return nil, 0, err
	}
	if reply, err = r.receive(); err != nil {
		return nil, 0, err
	}
	reply.Int()
	reply.Long()
	return reply, reply.Int(), nil
}

// ask sends one request for each path and reads the replies; the body is nil where the node does not exist. The zxid
// belongs to the last write that the server has applied.
func (r *Reader) ask(op int32, paths []string) (bodies []jute.Message, zxid int64, err error) {
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

// Keys are the nodes of all locks, with every write that was committed before: a follower may be behind, and would show
// what was removed just now as left behind.
func (r *Reader) Keys(ctx context.Context) (found map[string]time.Duration, err error) {
	const root = topology.ZooKeeperRoot
	err = r.locked(ctx, func() error {
		if _, _, err := r.ask(opSync, []string{root}); err != nil {
			return err
		}
		locks, _, err := r.list([]string{root})
		if err != nil {
			return err
		}
		below, _, err := r.list(format.Texts(locks[0], func(name string) string { return root + "/" + name }))
		found = map[string]time.Duration{}
		for i, names := range below {
			for _, name := range names {
				found[locks[0][i]+"/"+name] = -1
			}
		}
		return err
	})
	return found, err
}

func (r *Reader) list(paths []string) (names [][]string, zxid int64, err error) {
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

// Sample is the role of the server, and the first nodes of locks, by key: the holders of mutexes. Keys without nodes
// are left out. The error says why the server does not serve clients. It always asks the server something: only then
// a connection that the server has ended is noticed.
func (r *Reader) Sample(ctx context.Context, keys []string) (s history.Sample, err error) {
	paths := []string{topology.ZooKeeperRoot}
	for _, key := range keys {
		paths = append(paths, topology.ZooKeeperRoot+"/"+key)
	}
	err = r.locked(ctx, func() error {
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

// DeleteHeld deletes the nodes of the holders of a lock, and returns how many there were.
func (r *Reader) DeleteHeld(ctx context.Context, lock string) (deleted int, err error) {
	dir := topology.ZooKeeperRoot + "/" + lock
	err = r.locked(ctx, func() error {
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

// SetWritable sets the rights of the node of a lock. False: there is no such node.
func (r *Reader) SetWritable(ctx context.Context, lock string, writable bool) (changed bool, err error) {
	err = r.locked(ctx, func() error {
		var b jute.Message
		b.AppendString(topology.ZooKeeperRoot + "/" + lock)
		appendRights(&b, cluster.NodeRights(writable))
		b.AppendInt(-1) // any version
		_, code, err := r.exchange(opSetACL, b)
		if changed = err == nil && code == 0; !changed && err == nil && code != errNoNode {
			err = fmt.Errorf("setting the rights of %s: error %d", lock, code)
		}
		return err
	})
	return changed, err
}

// appendRights appends a list of one ACL, of world:anyone.
func appendRights(b *jute.Message, rights int32) {
	b.AppendInt(1)
	b.AppendInt(rights)
	b.AppendString("world")
	b.AppendString("anyone")
}

// addHolder adds a reply to getData, with data and stat, to the state of a lock.
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

// Close ends the session.
func (r *Reader) Close() { r.line.Close() }
