package znode

import (
	"maps"
	"slices"
	"strings"
)

// Tree is the data of a server. The zero value is not usable; see [New].
type Tree struct {
	nodes      map[string]*node
	sessions   map[int64]int32 // timeouts in milliseconds
	ephemerals map[int64]map[string]bool
	zxid       int64
	undo       []func() // of the changes since begin; nil: none are kept
	keep       bool
}

// node is a node. Its stat is as ZooKeeper stores it: Cversion counts the children ever created.
type node struct {
	data     []byte
	acl      []ACL
	stat     Stat
	children map[string]bool
}

// system is the nodes that each server has from the start.
func system() []string { return []string{"/zookeeper", "/zookeeper/config", "/zookeeper/quota"} }

// New returns the data of a server with an empty disk.
func New() *Tree {
	t := &Tree{nodes: map[string]*node{}, sessions: map[int64]int32{}, ephemerals: map[int64]map[string]bool{}}
	world := []ACL{{Perms: permRead | permWrite | permCreate | permDelete | permAdmin, Scheme: "world", ID: "anyone"}}
	t.nodes["/"] = &node{data: []byte{}, acl: world, children: map[string]bool{}}
	for _, path := range system() {
		parent, name := split(path)
		t.nodes[path] = &node{data: []byte{}, acl: world, children: map[string]bool{}}
		t.nodes[parent].children[name] = true
	}
	return t
}

// Clone is an independent copy.
func (t *Tree) Clone() *Tree {
	c := &Tree{
		nodes: make(map[string]*node, len(t.nodes)), sessions: maps.Clone(t.sessions),
		ephemerals: make(map[int64]map[string]bool, len(t.ephemerals)), zxid: t.zxid,
	}
	for path, n := range t.nodes { // in any order: it fills a map
		own := *n
		own.children = maps.Clone(n.children)
		c.nodes[path] = &own
	}
	for id, paths := range t.ephemerals { // in any order: it fills a map
		c.ephemerals[id] = maps.Clone(paths)
	}
	return c
}

// Zxid is the zxid of the last applied transaction.
func (t *Tree) Zxid() int64 { return t.zxid }

// Sessions are the timeouts of all sessions, in milliseconds.
func (t *Tree) Sessions() map[int64]int32 { return maps.Clone(t.sessions) }

// Children are the names of the children of a node, sorted; nil if it is not there.
func (t *Tree) Children(path string) []string {
	n := t.nodes[path]
	if n == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(n.children))
}

// Get returns the data and the metadata of a node.
func (t *Tree) Get(path string) (data []byte, s Stat, ok bool) {
	n := t.nodes[path]
	if n == nil {
		return nil, Stat{}, false
	}
	return n.data, n.shown(), true
}

// EmptyContainers are the containers that have had children and have none, sorted.
func (t *Tree) EmptyContainers() []string {
	var paths []string
	for path, n := range t.nodes { // in any order: sorted below
		if n.stat.Owner == containerOwner && n.stat.Cversion > 0 && len(n.children) == 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// shown is the stat as clients see it: its cversion counts the children created and deleted, and a container has no
// owner.
func (n *node) shown() Stat {
	s := n.stat
	s.NumChildren, s.DataLength = int32(len(n.children)), int32(len(n.data))
	s.Cversion = 2*s.Cversion - s.NumChildren
	if s.Owner == containerOwner {
		s.Owner = 0
	}
	return s
}

// split cuts a path into its parent and its name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return max(path[:i], "/"), path[i+1:]
}

// Apply applies a transaction. The events are the ones that watches may wait for, in the order of the notifications.
func (t *Tree) Apply(x Txn) (r Result, events []Event) {
	t.zxid = max(t.zxid, x.Zxid)
	r = t.apply(x, &events)
	for i := range events {
		events[i].Zxid = x.Zxid
	}
	return r, events
}

func (t *Tree) apply(x Txn, events *[]Event) Result {
	r := Result{Op: x.Op, Path: x.Path}
	switch x.Op {
	case OpCreate, OpCreate2, OpCreateContainer:
		r.Stat = t.create(x, events)
	case OpDelete, OpDeleteContainer:
		t.remove(x.Path, x.Zxid, events)
	case OpSetData:
		n := t.change(x.Path)
		n.data, n.stat.Version, n.stat.Mzxid, n.stat.Mtime = x.Data, x.Version, x.Zxid, x.Time
		r.Stat = n.shown()
		*events = append(*events, n.event(DataChanged, x.Path))
	case OpSetACL:
		n := t.change(x.Path)
		n.acl, n.stat.Aversion = x.ACL, x.Version
		r.Stat = n.shown()
	case OpCreateSession:
		t.sessions[x.Session] = x.Timeout
	case OpCloseSession:
		delete(t.sessions, x.Session)
		for _, path := range x.Paths {
			if t.nodes[path] != nil {
				t.remove(path, x.Zxid, events)
			}
		}
	case OpMulti:
		for _, part := range x.Parts {
			r.Parts = append(r.Parts, t.apply(part, events))
		}
	case OpError:
		r.Code = x.Code
	}
	return r
}

// change is a node that is about to be changed.
func (t *Tree) change(path string) *node {
	n := t.nodes[path]
	if t.keep {
		old := *n
		t.undo = append(t.undo, func() { n.data, n.acl, n.stat = old.data, old.acl, old.stat })
	}
	return n
}

func (t *Tree) create(x Txn, events *[]Event) Stat {
	parent, name := split(x.Path)
	p := t.change(parent)
	n := &node{data: x.Data, acl: x.ACL, children: map[string]bool{}, stat: Stat{
		Czxid: x.Zxid, Mzxid: x.Zxid, Pzxid: x.Zxid, Ctime: x.Time, Mtime: x.Time, Owner: x.Owner,
	}}
	t.link(x.Path, n)
	p.children[name] = true
	if t.keep {
		t.undo = append(t.undo, func() { t.unlink(x.Path); delete(p.children, name) })
	}
	if x.Version > p.stat.Cversion {
		p.stat.Cversion, p.stat.Pzxid = x.Version, x.Zxid
	}
	*events = append(*events, n.event(Created, x.Path), p.event(ChildrenChanged, parent))
	return n.shown()
}

func (t *Tree) remove(path string, zxid int64, events *[]Event) {
	parent, name := split(path)
	n, p := t.nodes[path], t.change(parent)
	t.unlink(path)
	delete(p.children, name)
	if t.keep {
		t.undo = append(t.undo, func() { t.link(path, n); p.children[name] = true })
	}
	p.stat.Pzxid = max(p.stat.Pzxid, zxid)
	*events = append(*events, n.event(Deleted, path), p.event(ChildrenChanged, parent))
}

// event is an event of the node. Clients without permission to read the node are not notified.
func (n *node) event(is EventType, path string) Event {
	return Event{Type: is, Path: path, Hidden: !n.allows(permRead)}
}

// link puts a node into the maps, and unlink takes it out.
func (t *Tree) link(path string, n *node) {
	t.nodes[path] = n
	if id := n.stat.Owner; id != 0 && id != containerOwner {
		if t.ephemerals[id] == nil {
			t.ephemerals[id] = map[string]bool{}
		}
		t.ephemerals[id][path] = true
	}
}

func (t *Tree) unlink(path string) {
	id := t.nodes[path].stat.Owner
	delete(t.nodes, path)
	if delete(t.ephemerals[id], path); len(t.ephemerals[id]) == 0 {
		delete(t.ephemerals, id)
	}
}

// rollback undoes the changes since keep was set.
func (t *Tree) rollback() {
	for _, do := range slices.Backward(t.undo) {
		do()
	}
}

// SetZxid is how a new leader begins its epoch.
func (t *Tree) SetZxid(zxid int64) { t.zxid = max(t.zxid, zxid) }
