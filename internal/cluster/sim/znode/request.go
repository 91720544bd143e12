package znode

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
)

// Request is a request of a client, as decoded.
type Request struct {
	Xid     int32
	Op      Op
	Path    string
	Data    []byte
	ACL     []ACL
	Flags   int32
	Version int32
	Watch   bool
	Timeout int32     // create session
	Parts   []Request // of OpMulti

	Zxid                                    int64 // set watches: that the client has seen
	DataWatches, ExistWatches, ChildWatches []string
}

// ParseRequest decodes a request.
func ParseRequest(m jute.Message) Request {
	r := Request{Xid: m.Int(), Op: Op(m.Int())}
	switch r.Op {
	case OpMulti:
		for {
			op, done := Op(m.Int()), m.Bool()
			if m.Int(); done || len(m) == 0 {
				return r
			}
			part := Request{Op: op}
			part.parse(&m)
			r.Parts = append(r.Parts, part)
		}
	case OpSetWatches:
		r.Zxid = m.Long()
		r.DataWatches, r.ExistWatches, r.ChildWatches = texts(&m), texts(&m), texts(&m)
	default:
		r.parse(&m)
	}
	return r
}

// parse decodes the body of a request for one node.
func (r *Request) parse(m *jute.Message) {
	switch r.Op {
	case OpPing, OpCloseSession:
		return
	}
	r.Path = m.Text()
	switch r.Op {
	case OpCreate, OpCreate2, OpCreateContainer:
		r.Data, r.ACL, r.Flags = data(m), parseACL(m), m.Int()
	case OpDelete, OpCheck:
		r.Version = m.Int()
	case OpSetData:
		r.Data, r.Version = data(m), m.Int()
	case OpSetACL:
		r.ACL, r.Version = parseACL(m), m.Int()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		r.Watch = m.Bool()
	}
}

// data is a copy of a buffer; nil stays nil.
func data(m *jute.Message) []byte { return slices.Clone(m.Bytes()) }

func texts(m *jute.Message) (list []string) {
	for n := m.Int(); n > 0 && len(*m) > 0; n-- {
		list = append(list, m.Text())
	}
	return list
}

func parseACL(m *jute.Message) (list []ACL) {
	for n := m.Int(); n > 0 && len(*m) > 0; n-- {
		list = append(list, ACL{m.Int(), m.Text(), m.Text()})
	}
	return list
}

// Reply is the frame of a reply.
func Reply(xid int32, zxid int64, code Code, body jute.Message) []byte {
	var m jute.Message
	m.AppendInt(xid)
	m.AppendLong(zxid)
	m.AppendInt(int32(code))
	if code == 0 {
		m = append(m, body...)
	}
	return m.Frame()
}

// connected is the state in notifications (KeeperState.SyncConnected).
const (
	connected       = 3
	notificationXid = -1
)

// Notification is the frame of a notification.
func Notification(e Event) []byte {
	var m jute.Message
	m.AppendInt(int32(e.Type))
	m.AppendInt(connected)
	m.AppendString(e.Path)
	return Reply(notificationXid, e.Zxid, 0, m)
}

// Body is the body of the reply to a write.
func (r Result) Body() (m jute.Message) {
	switch r.Op {
	case OpCreate:
		m.AppendString(r.Path)
	case OpCreate2, OpCreateContainer:
		m.AppendString(r.Path)
		appendStat(&m, r.Stat)
	case OpSetData, OpSetACL:
		appendStat(&m, r.Stat)
	case OpMulti:
		for _, part := range r.Parts {
			op := part.Op
			if op == OpCreateContainer {
				op = OpCreate2 // the kind of the result
			}
			appendHeader(&m, op, false, part.Code)
			if part.Op == OpError {
				m.AppendInt(int32(part.Code))
				continue
			}
			m = append(m, part.Body()...)
		}
		appendHeader(&m, -1, true, -1)
	}
	return m
}

// appendHeader adds a MultiHeader.
func appendHeader(m *jute.Message, op Op, done bool, code Code) {
	m.AppendInt(int32(op))
	m.AppendBool(done)
	m.AppendInt(int32(code))
}

func appendACL(m *jute.Message, list []ACL) {
	m.AppendInt(int32(len(list)))
	for _, a := range list {
		m.AppendInt(a.Perms)
		m.AppendString(a.Scheme)
		m.AppendString(a.ID)
	}
}

func appendStat(m *jute.Message, s Stat) {
	for _, v := range []int64{s.Czxid, s.Mzxid, s.Ctime, s.Mtime} {
		m.AppendLong(v)
	}
	for _, v := range []int32{s.Version, s.Cversion, s.Aversion} {
		m.AppendInt(v)
	}
	m.AppendLong(s.Owner)
	m.AppendInt(s.DataLength)
	m.AppendInt(s.NumChildren)
	m.AppendLong(s.Pzxid)
}
