package znode_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// describe writes a message of a server in words, without wall-clock times. Zxids are relative to base.
func describe(m jute.Message, op znode.Op, base int64) string {
	var b strings.Builder
	xid, zxid, code := m.Int(), m.Long(), m.Int()
	if zxid > 0 {
		zxid -= base
	}
	fmt.Fprintf(&b, "xid %d zxid %d code %d", xid, zxid, code)
	switch {
	case xid == -1:
		fmt.Fprintf(&b, ": event %d state %d %q", m.Int(), m.Int(), m.Text())
	case len(m) > 0 && op == znode.OpMulti:
		describeMulti(&b, &m, base)
	case len(m) > 0:
		describeBody(&b, &m, op, base)
	}
	if len(m) > 0 {
		fmt.Fprintf(&b, " and %x", []byte(m))
	}
	return b.String()
}

func describeMulti(b *strings.Builder, m *jute.Message, base int64) {
	for len(*m) > 0 {
		op, done, code := znode.Op(m.Int()), m.Bool(), m.Int()
		fmt.Fprintf(b, "; %d done %v code %d", op, done, code)
		switch {
		case done:
			return
		case op == znode.OpError:
			fmt.Fprintf(b, " error %d", m.Int())
		default:
			describeBody(b, m, op, base)
		}
	}
}

func describeBody(b *strings.Builder, m *jute.Message, op znode.Op, base int64) {
	switch op {
	case znode.OpCreate, znode.OpSync:
		fmt.Fprintf(b, " path %q", m.Text())
	case znode.OpCreate2, znode.OpCreateContainer:
		fmt.Fprintf(b, " path %q", m.Text())
		describeStat(b, m, base)
	case znode.OpSetData, znode.OpSetACL, znode.OpExists:
		describeStat(b, m, base)
	case znode.OpGetData:
		data := m.Bytes()
		fmt.Fprintf(b, " data %q nil %v", data, data == nil)
		describeStat(b, m, base)
	case znode.OpGetACL:
		for n := m.Int(); n > 0; n-- {
			fmt.Fprintf(b, " acl %d %s %s", m.Int(), m.Text(), m.Text())
		}
		describeStat(b, m, base)
	case znode.OpGetChildren, znode.OpGetChildren2:
		var names []string
		for n := m.Int(); n > 0; n-- {
			names = append(names, m.Text())
		}
		slices.Sort(names) // ZooKeeper's are in the order of a hash set
		fmt.Fprintf(b, " children %q", names)
		if op == znode.OpGetChildren2 {
			describeStat(b, m, base)
		}
	}
}

func describeStat(b *strings.Builder, m *jute.Message, base int64) {
	czxid, mzxid := m.Long()-base, m.Long()-base
	m.Long() // ctime
	m.Long() // mtime
	fmt.Fprintf(b, " stat czxid %d mzxid %d version %d cversion %d aversion %d owner %x length %d children %d pzxid %d",
		czxid, mzxid, m.Int(), m.Int(), m.Int(), uint64(m.Long()), m.Int(), m.Int(), m.Long()-base)
}
