package kept

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// attribute finds the acquire whose hold a value is: by the name of its owner, or by the time at which it appeared.
func (v *Values) attribute(s *Stay) {
	if owner := v.named(s.Value); owner != None {
		s.Span = v.lastOf(owner, s.Key, s.First.Time)
		if s.Span != None {
			s.Client = v.client(s.Span)
		}
		return
	}
	s.Span = v.appeared(s)
	if s.Span == None {
		return
	}
	s.Client = v.client(s.Span)
	v.granted[s.Span] = s
	at := keyValue{s.Key, s.Value}
	if c, known := v.clients[at]; known && c != s.Client {
		v.clients[at] = None
	} else {
		v.clients[at] = s.Client
	}
}

// inherit gives a value that appeared without a grant to the client to which it belonged before: it was set back. A new
// value that replaced the value of an unreleased hold belongs to that hold: some locks store the time of the last
// renewal.
func (v *Values) inherit(s *Stay) {
	if s.Client != None || v.named(s.Value) != None {
		return
	}
	if c, known := v.clients[keyValue{s.Key, s.Value}]; known {
		s.Client = c
		for _, other := range v.of()[keyValue{s.Key, s.Value}] {
			if other.First.Time < s.First.Time && other.Span != None && c != None {
				s.Span = other.Span
			}
		}
		return
	}
	if r := s.Replaced; r != nil && r.Span != None && v.released(r.Span, s.First.Time) == None {
		s.Span, s.Client = r.Span, r.Client
	}
}

// named is the owner that a value names, also as part of a longer id; None: there is none.
func (v *Values) named(value string) int32 {
	owner, known := v.owners[value]
	if known {
		return owner
	}
	owner = None
	if len(v.h.Owners) <= MaxSearched {
		owner = int32(slices.IndexFunc(v.h.Owners, func(name string) bool { return PartOf(value, name) }))
	}
	v.owners[value] = owner
	return owner
}

// lastOf is the last acquire of an owner that had been invoked by t; None: there is none.
func (v *Values) lastOf(owner, key int32, t time.Duration) int32 {
	list := v.last.of(owner, key)
	n := sort.Search(len(list), func(n int) bool { return v.h.Spans[list[n]].Call > t })
	if n == 0 {
		return None
	}
	return list[n-1]
}

// appeared is the acquire that was granted when a value appeared, and whose reply came while it was kept. Of several,
// it is the one whose hold was released when the value disappeared, or else the only one whose reply came before the
// first sample, or else the one whose reply came first. None: there is none, or it is not certain.
func (v *Values) appeared(s *Stay) int32 {
	all := v.grantedIn(s, s.Last.Time)
	if _, known := v.clients[keyValue{s.Key, s.Value}]; len(all) == 0 && !known && s.After != nil && !v.mayBeRenewed(s) {
		all = v.grantedIn(s, s.After.Time)
	}
	if len(all) < 2 {
		return only(all)
	}
	if one := only(v.keep(all, func(i int32) bool { return v.releasedAt(i, s) })); one != None {
		return one
	}
	if early := v.keep(all, func(i int32) bool { return v.h.Spans[i].Return <= s.First.Time }); len(early) > 0 {
		return only(early)
	}
	return all[0]
}

// mayBeRenewed reports whether a renewal may have set a value in place of an earlier value of the same hold: that
// hold was released before the next sample, so a grant by then may have followed the release.
func (v *Values) mayBeRenewed(s *Stay) bool {
	r := s.Replaced
	return r != nil && (r.Span == None || v.released(r.Span, s.After.Time) != None)
}

// grantedIn are the acquires that may have been granted when a value appeared and whose replies came by t; those that
// are known to have another value are not among them.
func (v *Values) grantedIn(s *Stay, t time.Duration) []int32 {
	list, from := v.grants[s.Key], time.Duration(-1)
	if s.Before != nil {
		from = s.Before.Sent
	}
	n := sort.Search(len(list), func(n int) bool { return v.h.Spans[list[n]].Return >= from })
	last := sort.Search(len(list), func(n int) bool { return v.h.Spans[list[n]].Return > t })
	return v.keep(list[n:max(n, last)], func(i int32) bool {
		other := v.granted[i]
		return v.h.Spans[i].Call <= s.First.Time && (other == nil || other.Value == s.Value)
	})
}

func (v *Values) keep(list []int32, is func(int32) bool) (kept []int32) {
	for _, i := range list {
		if is(i) {
			kept = append(kept, i)
		}
	}
	return kept
}

// only is the only element of a list; None: it has none, or several.
func only(list []int32) int32 {
	if len(list) != 1 {
		return None
	}
	return list[0]
}

// releasedAt reports whether the hold of an acquire was released when a value disappeared.
func (v *Values) releasedAt(acquire int32, s *Stay) bool {
	if s.After == nil {
		return false
	}
	r := v.released(acquire, history.Infinity)
	return r != None && v.h.Spans[r].Call <= s.After.Time && v.h.Spans[r].Return >= s.Last.Sent
}

// released is the first release of the owner of an acquire after its grant that succeeded and was invoked by t; None:
// there is none.
func (v *Values) released(acquire int32, t time.Duration) int32 {
	a := &v.h.Spans[acquire]
	list := v.given.of(a.Owner, a.Key)
	n := sort.Search(len(list), func(n int) bool { return v.h.Spans[list[n]].Call >= a.Return })
	if n == len(list) || v.h.Spans[list[n]].Call > t {
		return None
	}
	return list[n]
}

func (v *Values) client(span int32) int { return v.h.Spans[span].Process.Client(v.h.Clients) }

// Replacing are the stays whose value replaced another one between two samples of their node, in the order of time.
func (v *Values) Replacing() (all []*Stay) {
	for _, s := range v.stays {
		if s.Replaced != nil {
			all = append(all, s)
		}
	}
	return all
}

// Of is the last stay of a value at a key that had begun by t, or else the first one; nil: no master kept it.
func (v *Values) Of(key int32, value string, t time.Duration) *Stay {
	value, _, _ = strings.Cut(value, " ")
	list := v.of()[keyValue{key, value}]
	n := sort.Search(len(list), func(n int) bool { return list[n].First.Time > t })
	if len(list) == 0 {
		return nil
	}
	return list[max(n-1, 0)]
}

// Showing are the stays that show the hold of an acquire, in the order of time.
func (v *Values) Showing(acquire int32) (all []*Stay) { return v.shown()[acquire] }
