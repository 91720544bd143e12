package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// receivedPromise is one promise that a client received: by a grant, a renewal or a notice; or the end of one, by a
// release.
type receivedPromise struct {
	at, until time.Duration
	asked     time.Duration // its request was not sent before; of a notice, unknown: at
	span      int32         // the operation; none: a notice
	event     int32
	kind      promiseEvent
	reader    bool // of a hold for reading; a notice does not say
	notice    bool // made by a notice
}

// promiseEvent is the effect of an event on the promises of an owner.
type promiseEvent uint8

const (
	promiseMade     promiseEvent = iota // by a grant: a longer one, of an outer level, stays in force
	promiseReplaced                     // by a renewal: the innermost level's
	promiseOver                         // by a release: the innermost level's
)

// levelPromises are the promises to the levels of one hold, the outermost first.
type levelPromises []receivedPromise

// apply applies an event. A release leaves the promises of the outer levels.
func (l *levelPromises) apply(p receivedPromise) {
	list := *l
	if p.kind != promiseMade && len(list) > 0 {
		list = list[:len(list)-1]
	}
	if p.kind != promiseOver {
		list = append(list, p)
	}
	*l = list
}

// longest is the promise that ends last.
func (l levelPromises) longest() (longest receivedPromise) {
	for _, p := range l {
		if p.until > longest.until {
			longest = p
		}
	}
	return longest
}

// unkeptPromise is a promise that servers did not keep.
type unkeptPromise struct {
	receivedPromise
	seen time.Duration // when the deciding sample was taken
	node string        // whose sample it is
	keep time.Duration // until when that node kept the hold at most; 0: it did not have it
}

// judgeKeptPromises compares every promise with the servers' data: while it is in force, and its owner has not given it
// up, each server that granted it has the hold, with a lease that does not end before the promise. Of a quorum this is
// so for a majority (Options.MayBeDown servers may differ). A fault that may change the servers' data excuses the lock
// from the request of the promise on: a hold that is renewed after the fault was still there.
func (c *honestyCheck) judgeKeptPromises() {
	seen := c.samples()
	if seen == nil {
		return
	}
	for i, h := range refs(c.holds) {
		if c.h.Limit(h.key) != 0 {
			continue
		}
		var levels levelPromises
		list := c.promises().of(h)
		for n, p := range list {
			levels.apply(p)
			longest := levels.longest()
			next := min(h.until, longest.until)
			if n+1 < len(list) {
				next = min(next, list[n+1].at)
			}
			longest.at = p.at
			u, broken := seen.breaksPromise(h, longest, next, c.o)
			if !broken || c.o.applies(honestData) && c.all.changed(h, longest, u.seen) {
				continue
			}
			f := finding{rule: notKept, x: i, y: h.span, start: u.seen, end: min(h.until, u.until), note: u}
			if u.keep > 0 {
				f.rule, f.start, f.end = keptShorter, u.keep, u.until
			}
			c.found.add(f)
			break
		}
	}
}

// changed reports whether a fault may have changed the servers' record of a promise. The time of the request of a
// notice is known only if nothing delays it.
func (d disturbances) changed(h *hold, p receivedPromise, seen time.Duration) bool {
	since := p.asked
	at := segment{p.asked, p.asked}
	if p.span == none && d.mayAffect(at, anyClient, history.AffectsTraffic, history.AffectsClients) {
		since = h.asked
	}
	return d.mayAffect(segment{since, seen}, anyClient, history.AffectsData)
}

// breaksPromise reports whether more servers than may be down do not keep a promise between its instant and another
// one.
func (s *nodeSamples) breaksPromise(
	h *hold, p receivedPromise, until time.Duration, o Options,
) (u unkeptPromise, broken bool) {
	var all []unkeptPromise
	for node := range s.nodes {
		u, fails, keeps := s.breaksPromiseAt(node, h, p, until, o)
		switch {
		case fails:
			all = append(all, u)
		case keeps && o.MayBeDown == 0: // of two masters, the master with the hold decides
			return unkeptPromise{}, false
		}
	}
	if len(all) <= o.MayBeDown {
		return unkeptPromise{}, false
	}
	slices.SortStableFunc(all, func(a, b unkeptPromise) int { return cmp.Compare(a.seen, b.seen) })
	return all[o.MayBeDown], true
}

// breaksPromiseAt reports whether a node does not keep a promise, and whether it has the hold. A node that was not seen
// to grant it may have it, but does not break the promise.
func (s *nodeSamples) breaksPromiseAt(
	node int, h *hold, p receivedPromise, until time.Duration, o Options,
) (u unkeptPromise, fails, keeps bool) {
	named := s.named[nodeKey{int32(node), h.key}] != nil
	home := named
	for _, i := range s.between(node, h.asked, p.at) { // samples without names show that a held key became free
		is, _ := s.presenceOf(i, h.owner, h.key)
		home = home || is == unnamed
	}
	for i, x := range refsAt(s.h.Samples, s.between(node, p.at, until)) {
		is, rest := s.presenceOf(i, h.owner, h.key)
		u = unkeptPromise{receivedPromise: p, seen: x.Time, node: x.Node}
		if is == absent && o.MayBeDown == 0 &&
			(s.movedFrom(node, h.key, x.Time) || !keeps && s.unseenMaster(node, h.key, p.at, x.Time) || !named &&
				s.heldElsewhere(node, h.key, x.Time, o.slack())) {
			continue
		}
		if is == absent {
			return u, home, false
		}
		keeps = true
		if u.keep = later(x.Time, rest); rest >= 0 && u.keep+keepError(p.until-x.Time, o) < p.until {
			return u, home, home
		}
	}
	return u, false, keeps
}

// unseenMaster reports whether another node that has named an owner at a key was a master when it was last sampled
// before at, which was before from: of two masters, this one may have granted the lock after that.
func (s *nodeSamples) unseenMaster(node int, key int32, from, at time.Duration) bool {
	for other, all := range s.nodes {
		n := sort.Search(len(all), func(n int) bool { return s.h.Samples[all[n]].Time > at })
		if other == node || n == 0 || s.h.Samples[all[n-1]].Time >= from || s.named[nodeKey{int32(other), key}] == nil {
			continue
		}
		last := int(all[n-1])
		since := s.h.Samples[last+1:]
		if !slices.ContainsFunc(since[:sort.Search(len(since), func(n int) bool { return since[n].Time > at })],
			func(x history.Sample) bool { return x.Node == s.h.Samples[last].Node }) {
			return true
		}
	}
	return false
}

func (c *honestyCheck) unkeptPromiseViolation(f finding) Violation {
	h, u := &c.holds[f.x], f.note.(unkeptPromise)
	w := c.involving(BrokenPromise, h.span)
	first := c.h.Spans[h.span].Invoked
	if u.event != c.h.Spans[h.span].Ended {
		first = c.h.Spans[h.span].Ended
	}
	w.Events = []int{int(first), int(u.event)}
	w.Rule = "servers keep a hold for as long as the lock promises"
	w.Text = fmt.Sprintf("client %d was promised %s until %s, but at %s %s did not have it for that owner", w.Clients[0],
		lockName(w.Key), format.Instant(u.until), format.Instant(u.seen), u.node)
	if u.keep > 0 {
		w.Text = fmt.Sprintf("client %d was promised %s until %s, but %s kept it until %s", w.Clients[0], lockName(w.Key),
			format.Instant(u.until), u.node, format.Instant(u.keep))
	}
	return w
}
