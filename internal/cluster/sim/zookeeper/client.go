package zookeeper

import (
	"encoding/binary"
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// clientConn is the server's side of a client's connection.
type clientConn struct {
	member  *member
	conn    *network.Conn
	buf     []byte
	hello   *clientHello
	session int64 // 0: none yet
	timeout int32
	queue   []*queued // requests that are not answered, in order
	ended   bool
}

// clientHello is the first message of a client.
type clientHello struct {
	zxid     int64 // that it has seen
	timeout  int32 // milliseconds
	session  int64 // 0: a new one
	password []byte
	flagged  bool // it has a read-only flag, so the reply has one too
}

// queued is a request. A session's requests are answered in order: a read waits for the writes before it.
type queued struct {
	client  *clientConn
	request znode.Request
	done    bool // a write or sync was answered by the leader
	result  znode.Result
}

const passwordSize = 16

// password is the password of a session. It follows from the id, so it is not secret.
func password(session int64) []byte {
	p := binary.BigEndian.AppendUint64(nil, uint64(session))
	return binary.BigEndian.AppendUint64(p, network.Mix(uint64(session), passwordSize))
}

// Receive handles the client's requests. A server that does not serve clients closes the connection.
func (c *clientConn) Receive(data []byte) {
	c.buf = append(c.buf, data...)
	for !c.ended {
		m, rest, ok := jute.Cut(c.buf)
		if !ok {
			return
		}
		c.buf = rest
		switch {
		case !c.member.serving:
			c.finish()
		case c.hello == nil:
			c.connect(m)
		default:
			c.request(znode.ParseRequest(m))
		}
	}
}

// connect begins a session, or continues one. A client that has seen a later transaction than this server must use
// another server.
func (c *clientConn) connect(m jute.Message) {
	m.Int() // version of the protocol
	h := &clientHello{zxid: m.Long(), timeout: m.Int(), session: m.Long(), password: m.Bytes()}
	h.flagged = len(m) > 0
	c.hello = h
	server := c.member
	c.timeout = min(max(h.timeout, server.settings.minSession), server.settings.maxSession)
	switch {
	case h.zxid > server.tree.Zxid():
		c.finish()
	case h.session == 0:
		server.sessions++
		c.session = server.sessions
		c.submit(&queued{client: c, request: znode.Request{Op: znode.OpCreateSession, Timeout: c.timeout}})
	case !slices.Equal(h.password, password(h.session)):
		c.validated(false)
	case server.lead != nil:
		c.session = h.session
		c.validated(server.lead.revalidate(h.session, server.number))
	default:
		c.session = h.session
		server.tokens++
		server.follow.asked[server.tokens] = c
		server.follow.send(revalidate{h.session, server.tokens})
	}
}

// validated answers a client that has connected; false: its session has ended.
func (c *clientConn) validated(valid bool) {
	if c.ended {
		return
	}
	var m jute.Message
	m.AppendInt(0) // version of the protocol
	secret := make([]byte, passwordSize)
	if valid {
		m.AppendInt(c.timeout)
		m.AppendLong(c.session)
		secret = password(c.session)
	} else {
		m.AppendInt(0)
		m.AppendLong(0)
	}
	m.AppendBytes(secret)
	if c.hello.flagged {
		m.AppendBool(false)
	}
	c.send(m.Frame())
	if !valid {
		c.finish()
	}
}

// request handles a request: a write goes to the leader at once.
func (c *clientConn) request(r znode.Request) {
	m := c.member
	m.World.Commands++
	c.touch()
	q := &queued{client: c, request: r}
	c.queue = append(c.queue, q)
	if r.Op.Write() || r.Op == znode.OpSync {
		c.submit(q)
	} else {
		c.advance()
	}
}

func (c *clientConn) touch() {
	m := c.member
	switch {
	case m.lead != nil:
		m.lead.touch(c.session, c.timeout)
	case m.follow != nil:
		m.follow.touched[c.session] = c.timeout
	}
}

// submit sends a request to the leader.
func (c *clientConn) submit(q *queued) {
	m := c.member
	m.tokens++
	from := origin{m.number, m.Life, m.tokens}
	m.waiting[from.token] = q
	if m.lead != nil {
		m.lead.request(q.request, c.session, from)
		return
	}
	m.follow.send(forwarded{q.request, c.session, from})
}

// advance answers the requests whose turn it is.
func (c *clientConn) advance() {
	for len(c.queue) > 0 && !c.ended {
		q := c.queue[0]
		if op := q.request.Op; (op.Write() || op == znode.OpSync) && !q.done {
			return
		}
		c.queue = c.queue[1:]
		c.answer(q)
	}
}

func (c *clientConn) answer(q *queued) {
	r, zxid := q.request, c.member.tree.Zxid()
	reply := func(code znode.Code, body jute.Message) { c.send(znode.Reply(r.Xid, zxid, code, body)) }
	switch {
	case r.Op == znode.OpPing:
		reply(0, nil)
	case r.Op == znode.OpSync:
		var body jute.Message
		body.AppendString(r.Path)
		reply(0, body)
	case r.Op == znode.OpSetWatches:
		for _, e := range c.member.watches.Restore(c.member.tree, r, c) {
			c.send(znode.Notification(e))
		}
		reply(0, nil)
	case q.done && q.result.Code == znode.SessionMoved:
		c.finish() // (FinalRequestProcessor, ZOOKEEPER-710)
	case q.done:
		reply(q.result.Code, q.result.Body())
	case reads(r.Op):
		c.read(r, reply)
	default:
		reply(znode.Unimplemented, nil)
	}
}

func reads(op znode.Op) bool {
	return slices.Contains([]znode.Op{
		znode.OpExists, znode.OpGetData, znode.OpGetACL, znode.OpGetChildren, znode.OpGetChildren2,
	}, op)
}

// read reads this member's data, which may be older than the leader's.
func (c *clientConn) read(r znode.Request, reply func(znode.Code, jute.Message)) {
	m := c.member
	if m.lead != nil {
		switch code := m.lead.check(c.session, m.number); code {
		case 0:
		case znode.SessionMoved:
			c.finish()
			return
		default:
			reply(code, nil)
			return
		}
	}
	body, code, watch := m.tree.Read(r)
	if watch.Set {
		m.watches.Add(r.Path, watch.Child, c)
	}
	reply(code, body)
}

func (c *clientConn) send(frame []byte) {
	if !c.ended {
		c.conn.Send(network.Back, network.Segment{Data: frame, Size: int64(len(frame))})
	}
}

// finish closes the connection; sent bytes still arrive.
func (c *clientConn) finish() {
	if c.ended {
		return
	}
	c.drop()
	if !c.conn.Closed {
		c.conn.Ends[1] = network.ClosedEnd{}
		c.conn.Send(network.Back, network.Segment{Kind: network.Finished})
	}
}

// drop forgets a client whose connection has ended.
func (c *clientConn) drop() {
	c.ended = true
	c.member.watches.Drop(c)
	c.member.clients = slices.DeleteFunc(c.member.clients, func(other *clientConn) bool { return other == c })
}
