package znode_test

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// model is a server of znode: the prepared and the applied tree.
type model struct {
	prepared, applied *znode.Tree
	watches           znode.Watches[int]
	zxid              int64
	sent              [][]jute.Message // by session
}

func newModel(zxid int64, sessions int) *model {
	m := &model{prepared: znode.New(), applied: znode.New(), zxid: zxid, sent: make([][]jute.Message, sessions)}
	m.prepared.SetZxid(zxid)
	m.applied.SetZxid(zxid)
	return m
}

// prepare prepares a write of a session, as the leader does.
func (m *model) prepare(r znode.Request, id int64) znode.Txn {
	m.zxid++
	return m.prepared.Prepare(r, id, m.zxid, 0, 0)
}

func (m *model) apply(x znode.Txn) znode.Result {
	result, events := m.applied.Apply(x)
	for _, e := range events {
		for _, who := range m.watches.Trigger(e) {
			m.send(who, znode.Notification(e))
		}
	}
	return result
}

// requests executes the requests that a session has sent at once: all writes are prepared before the first one is
// applied. Another member leads whenever it is session 0.
func (m *model) requests(messages []jute.Message, session int, id int64) {
	if session == 0 {
		m.prepared = m.applied.Clone()
	}
	var all []znode.Request
	var prepared []znode.Txn
	for _, message := range messages {
		r := znode.ParseRequest(message)
		all = append(all, r)
		if r.Op.Write() {
			prepared = append(prepared, m.prepare(r, id))
		}
	}
	for _, r := range all {
		var x znode.Txn
		if r.Op.Write() {
			x, prepared = prepared[0], prepared[1:]
		}
		m.answer(r, x, session)
	}
}

// answer executes a request; x is its transaction if it is a write.
func (m *model) answer(r znode.Request, x znode.Txn, session int) {
	reply := func(code znode.Code, body jute.Message) {
		m.send(session, znode.Reply(r.Xid, m.applied.Zxid(), code, body))
	}
	switch {
	case r.Op.Write():
		result := m.apply(x)
		reply(result.Code, result.Body())
	case r.Op == znode.OpSync:
		var body jute.Message
		body.AppendString(r.Path)
		reply(0, body)
	case r.Op == znode.OpPing:
		reply(0, nil)
	case r.Op == znode.OpSetWatches:
		for _, e := range m.watches.Restore(m.applied, r, session) {
			m.send(session, znode.Notification(e))
		}
		reply(0, nil)
	default:
		body, code, watch := m.applied.Read(r)
		if watch.Set {
			m.watches.Add(r.Path, watch.Child, session)
		}
		reply(code, body)
	}
	if r.Op == znode.OpCloseSession {
		m.watches.Drop(session)
	}
}

func (m *model) send(session int, frame []byte) {
	message, _, _ := jute.Cut(frame)
	m.sent[session] = append(m.sent[session], message)
}

// take returns and forgets the sent messages.
func (m *model) take() [][]jute.Message {
	all := slices.Clone(m.sent)
	clear(m.sent)
	return all
}
