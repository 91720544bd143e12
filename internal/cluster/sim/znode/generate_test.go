package znode_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// step is a group of requests that a session sends at once, mostly one request, or the loss of its connection. Its
// paths are below the root of the sequence; it does not depend on the replies to earlier steps, so that each
// subsequence is a sequence.
type step struct {
	session   int
	reconnect bool // instead of requests
	requests  []znode.Request
}

func (s step) String() string {
	if s.reconnect {
		return fmt.Sprintf("session %d reconnects", s.session)
	}
	texts := make([]string, len(s.requests))
	for i, r := range s.requests {
		texts[i] = show(r)
	}
	return fmt.Sprintf("session %d: %s", s.session, strings.Join(texts, ", "))
}

func show(r znode.Request) string {
	name := map[znode.Op]string{
		znode.OpCreate: "create", znode.OpCreate2: "create2", znode.OpCreateContainer: "createContainer",
		znode.OpDelete: "delete", znode.OpExists: "exists", znode.OpGetData: "getData", znode.OpSetData: "setData",
		znode.OpGetACL: "getACL", znode.OpSetACL: "setACL", znode.OpGetChildren: "getChildren", znode.OpSync: "sync",
		znode.OpPing: "ping", znode.OpGetChildren2: "getChildren2", znode.OpCheck: "check", znode.OpMulti: "multi",
		znode.OpSetWatches: "setWatches", znode.OpCloseSession: "closeSession",
	}[r.Op]
	text := fmt.Sprintf("%s %q", name, r.Path)
	switch r.Op {
	case znode.OpCreate, znode.OpCreate2, znode.OpCreateContainer:
		text += fmt.Sprintf(" data %q acl %v flags %d", r.Data, r.ACL, r.Flags)
	case znode.OpSetData:
		text += fmt.Sprintf(" data %q version %d", r.Data, r.Version)
	case znode.OpSetACL:
		text += fmt.Sprintf(" acl %v version %d", r.ACL, r.Version)
	case znode.OpDelete, znode.OpCheck:
		text += fmt.Sprintf(" version %d", r.Version)
	case znode.OpSetWatches:
		text = fmt.Sprintf("setWatches after %d: data %q exist %q child %q", r.Zxid, r.DataWatches, r.ExistWatches,
			r.ChildWatches)
	case znode.OpMulti:
		parts := make([]string, len(r.Parts))
		for i, part := range r.Parts {
			parts[i] = show(part)
		}
		text = "multi [" + strings.Join(parts, "; ") + "]"
	}
	if r.Watch {
		text += " watch"
	}
	return text
}

// generator draws sequences. The paths are few, so that requests meet.
type generator struct {
	*rand.Rand
	closed map[int]bool
}

const (
	sessions   = 3 // of a sequence
	multiParts = 4
	burst      = 5 // requests at once
)

// sequence draws that many steps.
func sequence(seed uint64, length int) []step {
	g := generator{rand.New(rand.NewPCG(seed, 0)), map[int]bool{}}
	var all []step
	for len(all) < length && len(g.closed) < sessions {
		s := step{session: g.IntN(sessions)}
		if g.closed[s.session] {
			continue
		}
		switch g.IntN(40) {
		case 0:
			s.reconnect = true
		case 1, 2, 3, 4:
			for range 2 + g.IntN(burst-1) {
				s.requests = append(s.requests, g.request())
			}
		default:
			s.requests = append(s.requests, g.request())
		}
		if g.IntN(100) == 0 && !s.reconnect {
			s.requests = append(s.requests, znode.Request{Op: znode.OpCloseSession})
			g.closed[s.session] = true
		}
		all = append(all, s)
	}
	return all
}

func (g generator) request() znode.Request {
	ops := []znode.Op{
		znode.OpCreate, znode.OpCreate, znode.OpCreate, znode.OpCreate2, znode.OpCreate2, znode.OpCreateContainer,
		znode.OpDelete, znode.OpDelete, znode.OpDelete, znode.OpSetData, znode.OpSetData, znode.OpSetACL,
		znode.OpExists, znode.OpExists, znode.OpExists, znode.OpGetData, znode.OpGetData, znode.OpGetData,
		znode.OpGetChildren, znode.OpGetChildren, znode.OpGetChildren2, znode.OpGetChildren2, znode.OpGetACL,
		znode.OpMulti, znode.OpMulti, znode.OpMulti, znode.OpSync, znode.OpPing, znode.OpSetWatches,
	}
	r := znode.Request{Op: ops[g.IntN(len(ops))]}
	switch r.Op {
	case znode.OpPing:
	case znode.OpMulti:
		kinds := []znode.Op{
			znode.OpCreate, znode.OpCreate2, znode.OpCreateContainer, znode.OpDelete, znode.OpSetData, znode.OpCheck,
		}
		for range g.IntN(multiParts + 1) {
			part := znode.Request{Op: kinds[g.IntN(len(kinds))]}
			g.fill(&part)
			r.Parts = append(r.Parts, part)
		}
	case znode.OpSetWatches:
		r.Zxid = g.Int64N(60) // after the start
		for _, list := range []*[]string{&r.DataWatches, &r.ExistWatches, &r.ChildWatches} {
			for range g.IntN(3) {
				*list = append(*list, g.path())
			}
		}
	default:
		g.fill(&r)
	}
	return r
}

// fill draws the fields of a request for one node.
func (g generator) fill(r *znode.Request) {
	r.Path = g.path()
	if r.Op != znode.OpSync && g.IntN(200) == 0 {
		r.Path = "/\U0001F600" // not in setWatches and sync: ZooKeeper sends it back as two surrogates
	}
	switch r.Op {
	case znode.OpCreate, znode.OpCreate2:
		r.Data, r.ACL, r.Flags = g.data(), g.acl(), []int32{0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 7, -1}[g.IntN(12)]
		if r.Flags == 4 && r.Op == znode.OpCreate { // clients send createContainer
			r.Flags = 0
		}
	case znode.OpCreateContainer:
		r.Data, r.ACL, r.Flags = g.data(), g.acl(), 4
	case znode.OpDelete, znode.OpCheck:
		r.Version = g.version()
	case znode.OpSetData:
		r.Data, r.Version = g.data(), g.version()
	case znode.OpSetACL:
		r.ACL, r.Version = g.acl(), g.version()
	case znode.OpExists, znode.OpGetData, znode.OpGetChildren, znode.OpGetChildren2:
		r.Watch = g.IntN(4) > 0
	}
}

func (g generator) version() int32 { return []int32{-1, -1, 0, 0, 1, 2}[g.IntN(6)] }

func (g generator) data() []byte {
	return [][]byte{nil, {}, []byte("x"), []byte("data")}[g.IntN(4)]
}

func (g generator) acl() []znode.ACL {
	world := func(perms int32) znode.ACL { return znode.ACL{Perms: perms, Scheme: "world", ID: "anyone"} }
	switch g.IntN(40) {
	case 0:
		return nil
	case 1:
		return []znode.ACL{{Perms: 31, Scheme: "world", ID: "nobody"}}
	case 2:
		return []znode.ACL{world(31 &^ (1 << g.IntN(5)))}
	case 3:
		return []znode.ACL{world(1), world(31), world(1)}
	}
	return []znode.ACL{world(31)}
}

// path draws a path: sometimes of a sequential node, seldom an invalid one. It begins with the root, "", unless it has
// no slash in front.
func (g generator) path() string {
	if g.IntN(60) == 0 {
		return []string{
			"/a//b", "/a/", "/", "/./a", "/a/..", "/a\x01", "/é", "/\x7f", "/a\x00b", "/\uf000",
		}[g.IntN(10)]
	}
	var b strings.Builder
	for range []int{1, 1, 1, 1, 1, 2, 2, 2, 2, 3}[g.IntN(10)] {
		b.WriteByte('/')
		b.WriteString([]string{"a", "a", "b"}[g.IntN(3)])
		if g.IntN(10) == 0 {
			fmt.Fprintf(&b, "%010d", g.IntN(4))
		}
	}
	return b.String()
}

// encode is the message of a request: paths are below root, and zxids after base.
func encode(r znode.Request, root string, base int64) (m jute.Message) {
	m.AppendInt(r.Xid)
	m.AppendInt(int32(r.Op))
	switch r.Op {
	case znode.OpPing, znode.OpCloseSession:
	case znode.OpMulti:
		for _, part := range r.Parts {
			m.AppendInt(int32(part.Op))
			m.AppendBool(false)
			m.AppendInt(-1)
			encodeBody(&m, part, root)
		}
		m.AppendInt(-1)
		m.AppendBool(true)
		m.AppendInt(-1)
	case znode.OpSetWatches:
		m.AppendLong(base + r.Zxid)
		for _, list := range [][]string{r.DataWatches, r.ExistWatches, r.ChildWatches} {
			m.AppendInt(int32(len(list)))
			for _, path := range list {
				m.AppendString(root + path)
			}
		}
	default:
		encodeBody(&m, r, root)
	}
	return m
}

func encodeBody(m *jute.Message, r znode.Request, root string) {
	m.AppendString(root + r.Path)
	acl := func() {
		m.AppendInt(int32(len(r.ACL)))
		for _, a := range r.ACL {
			m.AppendInt(a.Perms)
			m.AppendString(a.Scheme)
			m.AppendString(a.ID)
		}
	}
	switch r.Op {
	case znode.OpCreate, znode.OpCreate2, znode.OpCreateContainer:
		m.AppendBytes(r.Data)
		acl()
		m.AppendInt(r.Flags)
	case znode.OpDelete, znode.OpCheck:
		m.AppendInt(r.Version)
	case znode.OpSetData:
		m.AppendBytes(r.Data)
		m.AppendInt(r.Version)
	case znode.OpSetACL:
		acl()
		m.AppendInt(r.Version)
	case znode.OpExists, znode.OpGetData, znode.OpGetChildren, znode.OpGetChildren2:
		m.AppendBool(r.Watch)
	}
}
