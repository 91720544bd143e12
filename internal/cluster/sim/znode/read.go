package znode

import (
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
)

// Read executes a read. The watch is to be set if set, whatever the code: a node that is not there may be waited for.
func (t *Tree) Read(r Request) (body jute.Message, code Code, w Watch) {
	if strings.IndexByte(r.Path, 0) >= 0 && r.Op == OpExists {
		return nil, BadArguments, w
	}
	n := t.nodes[r.Path]
	if r.Watch && (n != nil || r.Op == OpExists) {
		w = Watch{Set: true, Child: r.Op == OpGetChildren || r.Op == OpGetChildren2}
	}
	switch {
	case n == nil:
		return nil, NoNode, w
	case r.Op == OpGetACL && !n.allows(permRead|permAdmin), r.Op != OpGetACL && !n.allows(permRead):
		return nil, NoAuth, Watch{}
	}
	switch r.Op {
	case OpGetData:
		body.AppendBytes(n.data)
	case OpGetACL:
		appendACL(&body, n.acl)
	case OpGetChildren, OpGetChildren2:
		names := t.Children(r.Path)
		body.AppendInt(int32(len(names)))
		for _, name := range names {
			body.AppendString(name)
		}
	}
	if r.Op != OpGetChildren {
		appendStat(&body, n.shown())
	}
	return body, 0, w
}

// Watch is the watch that a read sets.
type Watch struct{ Set, Child bool }

// Watches are the watches of one server, by watcher: a connection. The zero value has none.
type Watches[W comparable] struct{ data, child map[string][]W }

// Add sets a watch on a path.
func (w *Watches[W]) Add(path string, child bool, who W) {
	m := &w.data
	if child {
		m = &w.child
	}
	if *m == nil {
		*m = map[string][]W{}
	}
	if slices.Contains((*m)[path], who) {
		return
	}
	(*m)[path] = append((*m)[path], who)
}

// Trigger removes and returns the watches that an event is for. A watcher with two watches on a node that is deleted
// gets one notification.
func (w *Watches[W]) Trigger(e Event) []W {
	var all []W
	if e.Type != ChildrenChanged {
		all = w.data[e.Path]
		delete(w.data, e.Path)
	}
	if e.Type == ChildrenChanged || e.Type == Deleted {
		for _, who := range w.child[e.Path] {
			if !slices.Contains(all, who) {
				all = append(all, who)
			}
		}
		delete(w.child, e.Path)
	}
	if e.Hidden {
		return nil
	}
	return all
}

// Drop removes all watches of a watcher.
func (w *Watches[W]) Drop(who W) {
	for _, m := range []map[string][]W{w.data, w.child} {
		for path, list := range m { // in any order: they are independent
			m[path] = slices.DeleteFunc(list, func(there W) bool { return there == who })
			if len(m[path]) == 0 {
				delete(m, path)
			}
		}
	}
}

// Restore sets the watches of a client that has reconnected, and returns the events that it has missed.
func (w *Watches[W]) Restore(t *Tree, r Request, who W) (missed []Event) {
	restore := func(paths []string, child bool, event func(*node) EventType) {
		for _, path := range paths {
			if is := event(t.nodes[path]); is != 0 {
				missed = append(missed, Event{Type: is, Path: path, Zxid: -1})
			} else {
				w.Add(path, child, who)
			}
		}
	}
	changed := func(zxid func(*node) int64, is EventType) func(*node) EventType {
		return func(n *node) EventType {
			switch {
			case n == nil:
				return Deleted
			case zxid(n) > r.Zxid:
				return is
			}
			return 0
		}
	}
	restore(r.DataWatches, false, changed(func(n *node) int64 { return n.stat.Mzxid }, DataChanged))
	restore(r.ExistWatches, false, func(n *node) EventType {
		if n != nil {
			return Created
		}
		return 0
	})
	restore(r.ChildWatches, true, changed(func(n *node) int64 { return n.stat.Pzxid }, ChildrenChanged))
	return missed
}
