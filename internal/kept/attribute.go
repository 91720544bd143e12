package kept

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// attribute finds the acquire whose hold a value is: by the name of its owner, or by the time at which it appeared.
func (v *Values) attribute(s *Stay) {
	if s.of.owner != None {
		s.Span = v.lastOf(s.of.owner, s.Key, s.First.Time)
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
	if s.of.known && s.of.client != s.Client {
		s.of.client = None
	} else {
		s.of.client, s.of.known = s.Client, true
	}
}

// inherit gives a value that appeared without a grant to the client to which it belonged before: it was set back. A new
// value that replaced the value of an unreleased hold belongs to that hold: some locks store the time of the last
// renewal. Any other value, such as one common to all holds, may be from an acquire without a reply.
func (v *Values) inherit(s *Stay) {
	if s.Client != None || s.of.owner != None {
		return
	}
	c, known := s.of.client, s.of.known
	if r := s.Replaced; known && c != None {
		for _, other := range s.of.stays {
			if other.First.Time < s.First.Time && other.Span != None {
				s.Span = other.Span
			}
		}
		s.Client = c
	} else if !known && r != nil {
		s.Span, s.Client = r.Span, r.Client
	}
	if s.Span != None && v.released(s.Span, s.First.Time) == None {
		return
	}
	if open := v.unanswered(s); open != None || !known {
		s.Span, s.Client = None, open
	}
}

// unanswered is the only client that can have set a value by an acquire of unknown outcome, invoked after the last
// grant before the value appeared; None: there is none, or there are several.
func (v *Values) unanswered(s *Stay) int {
	from := time.Duration(-1)
	list := v.grants[s.Key]
	if n := sort.Search(len(list), func(n int) bool { return v.h.Spans[list[n]].Return > s.First.Time }); n > 0 {
		from = v.h.Spans[list[n-1]].Return
	}
	client, open := None, v.open[s.Key]
	for _, i := range open[sort.Search(len(open), func(n int) bool { return v.h.Spans[open[n]].Call >= from }):] {
		if v.h.Spans[i].Call > s.First.Time {
			break
		}
		if c := v.client(i); client != None && c != client {
			return None
		} else if client = c; client == None {
			break
		}
	}
	return client
}

// findTurns finds the turns of all stays.
func (v *Values) findTurns() {
	for _, s := range v.stays {
		if s.Span != None && s.of.owner == None && v.h.Spans[s.Span].Outcome == history.OK {
			v.follow(s)
		}
	}
}

// follow finds the holds that follow on the one with which a value appeared and that have the same value: a grant
// after the release of the hold before it, or one with which the lease began again.
func (v *Values) follow(s *Stay) {
	last, list := s.Span, v.grants[s.Key]
	n := sort.Search(len(list), func(n int) bool { return v.h.Spans[list[n]].Return > v.h.Spans[last].Return })
	for _, i := range list[n:] {
		g := &v.h.Spans[i]
		if g.Return > s.Last.Time {
			return
		}
		if other := v.granted[i]; other != nil && other != s {
			continue
		}
		if r := v.released(last, g.Return); r != None {
			s.turns, last = append(s.turns, turn{max(v.h.Spans[r].Call, g.Call), i}), i
			continue
		}
		k := sort.Search(len(s.restarts), func(k int) bool { return s.restarts[k].before.Sent > g.Return })
		if k > 0 && g.Call <= s.restarts[k-1].at.Time && g.Owner != v.h.Spans[last].Owner {
			s.turns, last = append(s.turns, turn{s.restarts[k-1].at.Time, i}), i
		}
	}
}

// number is the number of a value. An owner that is named as part of a longer id counts as named.
func (v *Values) number(value string) int32 {
	n, known := v.numbers[value]
	if known {
		return n
	}
	n = int32(len(v.named))
	owner := None
	if len(v.h.Owners) <= MaxSearched {
		owner = slices.IndexFunc(v.h.Owners, func(name string) bool { return PartOf(value, name) })
	}
	v.numbers[value], v.named = n, append(v.named, int32(owner))
	return n
}

// Owner is the index of an owner by its name, and whether the history has it.
func (v *Values) Owner(name string) (i int32, known bool) {
	i, known = v.numbers[name]
	return i, known && int(i) < len(v.h.Owners)
}

// at is a value at a key; nil: no master kept it.
func (v *Values) at(key int32, value string) *keptValue {
	if n, known := v.numbers[value]; known {
		return v.values[keyValue{key, n}]
	}
	return nil
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
// it is the one whose hold was released while the value was kept, as others with the same value follow, or when it
// disappeared, or else the only one whose reply came before the first sample, or else the one whose reply came first.
// None: there is none, or it is not certain.
func (v *Values) appeared(s *Stay) int32 {
	all := v.grantedIn(s, s.Last.Time)
	if len(all) == 0 && !s.of.known && s.After != nil && !v.mayBeRenewed(s) {
		all = v.grantedIn(s, s.After.Time)
	}
	if len(all) < 2 {
		return only(all)
	}
	for _, released := range []func(int32, *Stay) bool{v.releasedDuring, v.releasedAt} {
		if one := only(v.keep(all, func(i int32) bool { return released(i, s) })); one != None {
			return one
		}
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

// grantedIn are the acquires that may have been granted when a value appeared and whose replies came by t, except
// acquires that are known to have another value.
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

// releasedDuring reports whether the hold of an acquire had its reply when a value appeared, and was released while it
// was kept.
func (v *Values) releasedDuring(acquire int32, s *Stay) bool {
	r := v.released(acquire, history.Infinity)
	return r != None && v.h.Spans[acquire].Return <= s.First.Time && v.h.Spans[r].Call >= s.First.Time &&
		v.h.Spans[r].Return <= s.Last.Sent
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

// stayAt is the last stay of a value at a key that had begun by t, or else the first one; nil: no master kept it.
func (v *Values) stayAt(key int32, value string, t time.Duration) *Stay {
	x := v.at(key, Bare(value))
	if x == nil {
		return nil
	}
	n := sort.Search(len(x.stays), func(n int) bool { return x.stays[n].First.Time > t })
	return x.stays[max(n-1, 0)]
}

// Whose returns the acquire of the hold to which a value belongs at an instant, and its client; None: not known.
func (v *Values) Whose(key, value string, t time.Duration) (span int32, client int) {
	k, known := v.keys[key]
	if !known {
		return None, None
	}
	s := v.stayAt(k, value, t)
	if s == nil {
		return None, None
	}
	v.followed()
	n := sort.Search(len(s.turns), func(n int) bool { return s.turns[n].from > t })
	if n == 0 {
		return s.Span, s.Client
	}
	span = s.turns[n-1].span
	return span, v.client(span)
}

// At is the stay that a sample of a master belongs to; nil: it has no value at the key, or a shared one.
func (v *Values) At(x *history.Sample, key int32) *Stay {
	value, single := valueOf(x.Keys[v.h.Keys[key]])
	kept := v.at(key, value)
	if !single || kept == nil {
		return nil
	}
	n := sort.Search(len(kept.stays), func(n int) bool { return kept.stays[n].First.Time > x.Time })
	for n--; n >= 0; n-- {
		if s := kept.stays[n]; s.Node == x.Node && x.Time <= s.Last.Time {
			return s
		}
	}
	return nil
}

// Identifies reports whether the value of a stay belongs to one hold alone: it names its owner, or it appeared for no
// other hold, and other values did at the key. Locks that store the same value for all have none.
func (v *Values) Identifies(s *Stay) bool {
	switch {
	case s == nil || s.Span == None:
		return false
	case s.of.owner != None:
		return true
	}
	other := func(t *Stay) bool { return t.Span != s.Span }
	return !slices.ContainsFunc(s.of.stays, other) &&
		slices.ContainsFunc(v.stays, func(t *Stay) bool { return t.Key == s.Key && t.Value != s.Value })
}

// Showing are the stays that show the hold of an acquire, in the order of time.
func (v *Values) Showing(acquire int32) (all []*Stay) { return v.shown()[acquire] }
