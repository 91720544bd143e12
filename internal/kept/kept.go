// Package kept finds, from the samples of servers, how long each master kept which value at the key of a lock, and
// whose hold the value is. Most locks store a name that the history does not know, such as a random id: that value
// belongs to the acquire that was granted when the value appeared.
//
// Read [Find] first, then [Stay].
package kept

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/lockchaos/lockchaos/history"
)

// None stands for an acquire or a client that is not known.
const None = -1

// MaxSearched is how many owners are searched for one whose name is part of a value, see [PartOf].
const MaxSearched = 10_000

// PartOf reports whether a value contains the name of an owner, as some locks append a connection or a thread to it. A
// short name may be part of any value.
func PartOf(value, owner string) bool { return len(owner) >= 6 && strings.Contains(value, owner) }

// Bare is a value without the end of the lease, which some locks append after a space.
func Bare(value string) string {
	value, _, _ = strings.Cut(value, " ")
	return value
}

// HasTime reports whether a value has a part that can be a time, such as the end of a lease: a number of at least ten
// digits, which the seconds since 1970 have.
func HasTime(value string) bool {
	parts := strings.FieldsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.ContainsFunc(parts, func(part string) bool {
		return len(part) >= 10 && strings.Trim(part, "0123456789") == ""
	})
}

// Stay is a time in which a master kept one value at a key, as its samples show it: samples between which the key had
// another value, or none, are not known.
type Stay struct {
	Node        string
	Key         int32 // index into History.Keys
	Value       string
	First, Last *history.Sample
	Before      *history.Sample // the last one of the node before First, as a master; nil: there is none
	After       *history.Sample // the first one after Last, as a master; nil: there is none
	Replaced    *Stay           // the value that Before has; nil: none, or it is shared
	rest        time.Duration   // of its lease, in Last
	restarts    []restart       // in the order of time
	turns       []turn          // after Span, in the order of time
	of          *keptValue      // Value at Key
	Span        int32           // index into History.Spans: the acquire whose hold the value is; None: not known
	Client      int             // whose value it is; None: not known
}

// restart is two samples of a value between which its lease began again: it was renewed, or set again.
type restart struct{ before, at *history.Sample }

// turn is the beginning of a hold with the same value as the hold before it. (Some locks store one value for all
// holds.)
type turn struct {
	from time.Duration
	span int32
}

// RenewedIn reports whether samples show that the lease of the value began again after from and by until.
func (s *Stay) RenewedIn(from, until time.Duration) bool {
	return slices.ContainsFunc(s.restarts, func(r restart) bool { return r.before.Sent >= from && r.at.Time <= until })
}

// Has reports whether the state of a key in a sample has the value of the stay.
func (s *Stay) Has(state history.KeyState) bool {
	value, single := valueOf(state)
	return single && value == s.Value
}

// Values are the values that the masters of a history kept. [Find] completes them, and their methods change nothing
// that a caller can see: goroutines may share them.
type Values struct {
	h       *history.History
	stays   []*Stay          // in the order of First, then of keys
	keys    map[string]int32 // index into History.Keys
	numbers map[string]int32 // of values; the number of an owner's name is its index into History.Owners
	named   []int32          // by number: index of the owner that the value names; None: it names none
	values  map[keyValue]*keptValue
	nodes   map[string]*node // while samples are read
	grants  [][]int32        // by key: acquires that succeeded, in the order of their replies
	open    [][]int32        // by key: acquires of unknown outcome, in their order
	last    Operations       // acquires that did not fail
	given   Operations       // releases that succeeded
	granted []*Stay          // by acquire: the value that appeared with its grant

	// found when needed, once
	shown    func() map[int32][]*Stay // by acquire, in the order of stays
	followed func()                   // the turns of all stays
}

// node has the stays of a node that have not ended, and its last sample.
type node struct {
	now  map[int32]*Stay
	last *history.Sample
}

type keyValue struct {
	key, value int32 // value: its number
}

// keptValue is a value at a key.
type keptValue struct {
	owner  int32   // index into History.Owners, as named by the value; None: none
	client int     // the client whose value it is, if known is set; None: several clients
	known  bool    // it appeared with a grant
	stays  []*Stay // in their order
}

// Find reads samples, which are in the order of time.
func Find(h *history.History, samples []history.Sample) *Values {
	v := &Values{h: h, keys: map[string]int32{}, numbers: make(map[string]int32, len(h.Owners)),
		nodes: map[string]*node{}, grants: make([][]int32, len(h.Keys)), open: make([][]int32, len(h.Keys)),
		values: make(map[keyValue]*keptValue), granted: make([]*Stay, len(h.Spans))}
	v.shown, v.followed = sync.OnceValue(v.byAcquire), sync.OnceFunc(v.findTurns)
	for i, name := range h.Owners {
		v.numbers[name], v.named = int32(i), append(v.named, int32(i))
	}
	for i, name := range h.Keys {
		v.keys[name] = int32(i)
	}
	v.index()
	for i := range samples {
		if x := &samples[i]; x.Up && x.Role == "master" {
			v.read(x)
		}
	}
	slices.SortStableFunc(v.stays, func(a, b *Stay) int {
		return cmp.Or(cmp.Compare(a.First.Time, b.First.Time), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Node, b.Node))
	})
	for _, s := range v.stays {
		s.of.stays = append(s.of.stays, s)
		v.attribute(s)
	}
	for _, s := range v.stays {
		v.inherit(s)
	}
	return v
}

func (v *Values) byAcquire() map[int32][]*Stay {
	all := map[int32][]*Stay{}
	for _, s := range v.stays {
		if s.Span != None {
			all[s.Span] = append(all[s.Span], s)
		}
	}
	return all
}

// index sorts the operations.
func (v *Values) index() {
	var last, given []int32
	for i := range v.h.Spans {
		s := &v.h.Spans[i]
		switch {
		case s.Op == history.OpRelease && s.Outcome == history.OK:
			given = append(given, int32(i))
		case s.Op != history.OpAcquire && s.Op != history.OpTry || s.Outcome == history.Fail:
		default:
			last = append(last, int32(i))
			if s.Outcome == history.OK {
				v.grants[s.Key] = append(v.grants[s.Key], int32(i))
			} else {
				v.open[s.Key] = append(v.open[s.Key], int32(i))
			}
		}
	}
	v.last, v.given = NewOperations(v.h, last), NewOperations(v.h, given)
	for _, list := range v.grants {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(v.h.Spans[a].Return, v.h.Spans[b].Return) })
	}
}

// read adds a sample to the stays of its node.
func (v *Values) read(x *history.Sample) {
	n := v.nodes[x.Node]
	if n == nil {
		n = &node{now: map[int32]*Stay{}}
		v.nodes[x.Node] = n
	}
	for key, now := range n.now { // in any order: each is looked at by itself
		state := x.Keys[v.h.Keys[key]]
		value, single := valueOf(state)
		if single && value == now.Value {
			if state.TTL > now.rest {
				now.restarts = append(now.restarts, restart{now.Last, x})
			}
			now.Last, now.rest = x, state.TTL
			continue
		}
		now.After = x
		if delete(n.now, key); single {
			v.begin(n, &Stay{Key: key, Value: value, First: x, Replaced: now, rest: state.TTL})
		}
	}
	for name, state := range x.Keys { // in any order, too
		key, known := v.keys[name]
		value, single := valueOf(state)
		if known && single && n.now[key] == nil && v.h.Limit(key) <= 1 { // a semaphore's is a number of permits
			v.begin(n, &Stay{Key: key, Value: value, First: x, rest: state.TTL})
		}
	}
	n.last = x
}

// begin begins a stay.
func (v *Values) begin(n *node, s *Stay) {
	at := keyValue{s.Key, v.number(s.Value)}
	if s.of = v.values[at]; s.of == nil {
		s.of = &keptValue{owner: v.named[at.value]}
		v.values[at] = s.of
	}
	s.Node, s.Last, s.Before, s.Span, s.Client = s.First.Node, s.First, n.last, None, None
	n.now[s.Key], v.stays = s, append(v.stays, s)
}

// valueOf is the value of a lock with one holder; false: it stores none, or is shared.
func valueOf(state history.KeyState) (value string, single bool) {
	value = Bare(state.Owner)
	return value, value != "" && len(state.Owners) < 2 && state.Limit == 0 && state.Mode == ""
}
