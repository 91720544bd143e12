package znode

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Prepare turns a write of a session into a transaction, and applies it to t: at the leader, t is the data with
// all transactions that were proposed. A request that fails is a transaction, too. refused is an error that a request
// has before it is looked at, of its session; 0: none. The time is in milliseconds.
func (t *Tree) Prepare(r Request, session, zxid, now int64, refused Code) Txn {
	x := t.prepare(r, Txn{Zxid: zxid, Time: now, Session: session}, refused)
	if x.Op == OpMulti { // its parts were applied one by one
		t.zxid = max(t.zxid, zxid)
	} else {
		t.Apply(x)
	}
	return x
}

func (t *Tree) prepare(r Request, x Txn, refused Code) Txn {
	x.Op, x.Path = r.Op, r.Path
	code := refused
	switch {
	case r.Op == OpMulti:
		return t.prepareMulti(r, x, refused)
	case r.Op == OpCreateSession:
		x.Timeout, code = r.Timeout, 0
	case r.Op == OpCloseSession:
		x.Paths, code = slices.Sorted(maps.Keys(t.ephemerals[x.Session])), 0
	case refused != 0:
	case r.Op == OpCreate || r.Op == OpCreate2 || r.Op == OpCreateContainer:
		code = t.prepareCreate(r, &x)
	case r.Op == OpDelete:
		code = t.prepareDelete(r)
	case r.Op == OpDeleteContainer:
		if n := t.nodes[r.Path]; n == nil {
			code = NoNode
		} else if len(n.children) > 0 {
			code = NotEmpty
		}
	default:
		code = t.prepareChange(r, &x)
	}
	if code != 0 {
		return Txn{Zxid: x.Zxid, Time: x.Time, Session: x.Session, Op: OpError, Code: code}
	}
	return x
}

// prepareMulti prepares and applies all operations, or none.
func (t *Tree) prepareMulti(r Request, x Txn, refused Code) Txn {
	if slices.ContainsFunc(r.Parts, func(part Request) bool { return part.Flags < 0 || part.Flags >= flagTTL }) {
		return Txn{Zxid: x.Zxid, Time: x.Time, Session: x.Session, Op: OpError, Code: MarshallingError}
	}
	t.keep, t.undo = true, nil
	defer func() { t.keep, t.undo = false, nil }()
	failed := -1
	for i, part := range r.Parts {
		if failed >= 0 {
			x.Parts = append(x.Parts, Txn{Op: OpError, Code: Inconsistent})
			continue
		}
		one := t.prepare(part, Txn{Zxid: x.Zxid, Time: x.Time, Session: x.Session}, refused)
		if x.Parts = append(x.Parts, one); one.Op == OpError {
			failed = i
			t.rollback()
			continue
		}
		var events []Event
		t.apply(one, &events)
	}
	for i := range max(failed, 0) {
		x.Parts[i] = Txn{Op: OpError}
	}
	return x
}

func (t *Tree) prepareCreate(r Request, x *Txn) Code {
	if r.Flags < 0 || r.Flags > flagTTLSeq {
		return BadArguments
	}
	if r.Flags >= flagTTL {
		return Unimplemented
	}
	slash := strings.LastIndexByte(r.Path, '/')
	if slash < 0 || strings.IndexByte(r.Path, 0) >= 0 {
		return BadArguments
	}
	acl, code := fixACL(r.ACL)
	if code != 0 {
		return code
	}
	parent := t.nodes[max(r.Path[:slash], "/")]
	switch {
	case parent == nil:
		return NoNode
	case !parent.allows(permCreate):
		return NoAuth
	}
	if r.Flags == flagSequential || r.Flags == flagSequential|flagEphemeral {
		x.Path += fmt.Sprintf("%010d", parent.stat.Cversion)
	}
	switch {
	case !validPath(x.Path):
		return BadArguments
	case t.nodes[x.Path] != nil:
		return NodeExists
	case parent.stat.Owner != 0 && parent.stat.Owner != containerOwner:
		return NoChildren
	}
	x.Data, x.ACL, x.Version = r.Data, acl, parent.stat.Cversion+1
	switch r.Flags {
	case flagContainer:
		x.Owner = containerOwner
	case flagEphemeral, flagEphemeral | flagSequential:
		x.Owner = x.Session
	}
	return 0
}

func (t *Tree) prepareDelete(r Request) Code {
	slash := strings.LastIndexByte(r.Path, '/')
	if slash < 0 || strings.IndexByte(r.Path, 0) >= 0 || r.Path == "/" || slices.Contains(system(), r.Path) {
		return BadArguments
	}
	parent, n := t.nodes[max(r.Path[:slash], "/")], t.nodes[r.Path]
	switch {
	case parent == nil:
		return NoNode
	case !parent.allows(permDelete):
		return NoAuth
	case n == nil:
		return NoNode
	case !matches(n.stat.Version, r.Version):
		return BadVersion
	case len(n.children) > 0:
		return NotEmpty
	}
	return 0
}

// prepareChange prepares setData, setACL and check.
func (t *Tree) prepareChange(r Request, x *Txn) Code {
	if !validPath(r.Path) {
		return BadArguments
	}
	if r.Op == OpSetACL {
		acl, code := fixACL(r.ACL)
		if code != 0 {
			return code
		}
		x.ACL = acl
	}
	n := t.nodes[r.Path]
	if n == nil {
		return NoNode
	}
	perm, version := int32(permWrite), n.stat.Version
	switch r.Op {
	case OpSetACL:
		perm, version = permAdmin, n.stat.Aversion
	case OpCheck:
		perm = permRead
	}
	switch {
	case !n.allows(perm):
		return NoAuth
	case !matches(version, r.Version):
		return BadVersion
	}
	x.Data, x.Version = r.Data, version+1
	return 0
}

func matches(version, wanted int32) bool { return wanted == -1 || wanted == version }

// allows reports whether the world has that permission.
func (n *node) allows(perm int32) bool {
	return slices.ContainsFunc(n.acl, func(a ACL) bool { return a.Perms&perm != 0 })
}

// fixACL refuses an ACL that is not for the world, and drops duplicate entries.
func fixACL(list []ACL) (fixed []ACL, code Code) {
	for _, a := range list {
		switch {
		case a.Scheme != "world":
			return nil, Unimplemented
		case a.ID != "anyone":
			return nil, InvalidACL
		case !slices.Contains(fixed, a):
			fixed = append(fixed, a)
		}
	}
	if len(fixed) == 0 {
		return nil, InvalidACL
	}
	return fixed, 0
}

// validPath is PathUtils.validatePath, which sees a character beyond the basic plane as two surrogates.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
	})
}
