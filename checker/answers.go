package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about replies to the holder: refusals although it holds the lock, and successes although it was refused
// before.

// aboutHold reports whether an operation is about the hold of its owner.
func aboutHold(op history.Op) bool {
	switch op {
	case history.OpWork, history.OpTouch, history.OpInspect, history.OpInspectOwner, history.OpGuard:
		return false
	}
	return true
}

// judgeAnswers judges the replies to releases and renewals of owners that were denied their hold, or lost it.
func (c *honestyCheck) judgeAnswers() {
	forced, lost := c.forced(), make(map[ownerKey][]int32) // notices
	for i, n := range refs(c.h.Notices) {
		if n.F == history.Lost && n.Left == 0 {
			at := ownerKey{n.Owner, n.Key}
			lost[at] = append(lost[at], i)
		}
	}
	if len(forced)+len(lost) == 0 && !c.hasRare(func(s *history.Span) bool { return s.Denied }) {
		return
	}
	var list []int32
	for i, s := range refs(c.h.Spans) {
		if aboutHold(s.Op) {
			list = append(list, i)
		}
	}
	ops := kept.NewOperations(c.h, list)
	for owner := range int32(len(c.h.Owners)) {
		for own := range ops.ByKey(owner) {
			at := ownerKey{owner, c.h.Spans[own[0]].Key}
			c.judgeAnswersTo(at, own, forced[at.key], lost[at])
		}
	}
}

// judgeAnswersTo judges the replies to one owner at one key.
func (c *honestyCheck) judgeAnswersTo(at ownerKey, list, forced, lost []int32) {
	suspect, client := len(lost) > 0, c.client(list[0])
	for i, s := range refsAt(c.h.Spans, list) {
		suspect = suspect || s.Denied || len(forced) > 0 && (s.Op == history.OpRenew || s.Op == history.OpRelease)
		if c.client(i) != client {
			return // it is not known which of them holds the lock
		}
	}
	if !suspect || client == anyClient || c.issueOrder[at.owner] != ordSequential || !c.oneHold(at.key, list) {
		return
	}
	if c.ownerOrder[at.owner] == ordSequential { // else it may have had a hold that it did not know of
		c.revivals(list, lost)
	}
	c.judgeForced(list, forced)
	for _, i := range list {
		if c.h.Spans[i].Denied {
			c.judgeDenied(i)
		}
	}
}

// oneHold reports whether the operations of an owner at a key are all about the same hold, at a time: a semaphore may
// give it several, and which of them a reply is about is not known.
func (c *honestyCheck) oneHold(key int32, list []int32) bool {
	if c.h.Limit(key) == 0 {
		return true
	}
	acquires := 0
	for _, s := range refsAt(c.h.Spans, list) {
		if isAcquire(s.Op) && (s.Outcome != history.Fail || s.Undone) {
			acquires++
		}
	}
	return acquires <= 1
}

// revivals judges the operations of one owner at one key: after it was denied its hold, or the hold was reported
// lost, nothing but another acquire gives it one. An owner that lost its write may still read. A release may succeed
// after a reported loss, also if a renewal was denied because of it: the lock may have lasted for longer than was
// promised.
func (c *honestyCheck) revivals(list, notices []int32) {
	denied, gone := make(map[bool]int32), never // denied: by Write; gone: by a notice
	for i, s := range refsAt(c.h.Spans, list) {
		for len(notices) > 0 && c.h.Notices[notices[0]].Index < s.Invoked {
			gone = c.h.Notices[notices[0]].Time
			notices = notices[1:]
		}
		switch {
		case isAcquire(s.Op):
			if s.Outcome != history.Fail {
				clear(denied)
				gone = never
			}
		case s.Op == history.OpForceRelease:
		case s.Denied && s.Op == history.OpRenew && (gone < never || len(notices) > 0 &&
			c.h.Notices[notices[0]].Index < s.Ended): // its client knows of the loss, and does not ask the servers
		case s.Denied:
			denied[s.Write] = i
		case s.Outcome != history.OK || s.Op != history.OpRenew && s.Op != history.OpRelease:
		default:
			x, was := denied[s.Write]
			if !was && (gone == never || s.Op != history.OpRenew || s.Call <= gone) {
				continue
			}
			why := "its loss had been reported"
			if was {
				why = fmt.Sprintf("the lock had replied at %s that it did not hold it", format.Instant(c.h.Spans[x].Return))
			} else {
				x = none
			}
			c.found.add(finding{rule: revived, x: x, y: i, start: s.Call, end: s.Return, note: why})
		}
	}
}

// judgeForced judges the operations of one owner at one key: after a forced release, nothing but another acquire gives
// it a hold.
func (c *honestyCheck) judgeForced(list, forced []int32) {
	var grant *history.Span // the last one; nil: unknown
	for i, s := range refsAt(c.h.Spans, list) {
		switch {
		case isAcquire(s.Op):
			grant = grantAfter(grant, s)
		case s.Outcome != history.OK || grant == nil || s.Op != history.OpRenew && s.Op != history.OpRelease:
		default:
			if by := c.forcedBetween(forced, grant, s); by != none {
				c.found.add(finding{rule: notForced, x: by, y: i, start: s.Call, end: s.Return})
			}
		}
	}
}

// grantAfter is the last grant after acquire s.
func grantAfter(last, s *history.Span) *history.Span {
	switch s.Outcome {
	case history.OK:
		return s
	case history.Fail:
		return last
	}
	return nil
}

// judgeDenied judges a release or renewal that was denied: if the promises to all levels of the hold were in force, and
// no other owner can have been granted the lock meanwhile, its owner had it. Only a fault that may change the servers'
// data excuses the lock.
func (c *honestyCheck) judgeDenied(i int32) {
	s := &c.h.Spans[i]
	n, held := c.lastHold(s.Owner, s.Key, s.Call)
	if !held {
		return
	}
	h := &c.holds[n]
	if h.reader == s.Write || h.endEvent != s.Invoked && h.endEvent != s.Ended { // the other mode, or it had ended before
		return
	}
	if !(h.promisedAt(s.Call) && h.promisedAt(s.Return)) || !c.allPromised(h, s.Return) || s.Return >= c.unrenewedFrom(h) {
		return
	}
	if c.touched(c.dis, segment{h.asked, s.Return}) {
		c.refusedHold(n, s.Return)
		return
	}
	if c.h.Limit(h.key) == 0 && c.mayBeGrantedBy(n, s.Return) { // other holders of permits do not matter
		return
	}
	c.found.add(finding{rule: deniedHolder, x: n, y: i, start: s.Call, end: s.Return, note: promiseEnd(h.lastPromise())})
}

// allPromised reports whether the promise to each level of a hold that ended was in force at t.
func (c *honestyCheck) allPromised(h *hold, t time.Duration) bool {
	return !slices.ContainsFunc(c.levelsLeft(h), func(p receivedPromise) bool { return p.until <= t })
}

// levelsLeft are the promises to the levels that a hold had when it ended. Which of several levels a notice renews is
// not known.
func (c *honestyCheck) levelsLeft(h *hold) levelPromises {
	return c.levelsWithout(h, func(p receivedPromise) bool { return p.kind == promiseOver })
}

// longestLeft is the end of the longest promise to a level that a hold may have had when it ended: a release of
// unknown outcome may have had no effect. 0: none is known.
func (c *honestyCheck) longestLeft(h *hold) time.Duration {
	return c.levelsWithout(h, func(p receivedPromise) bool {
		return p.kind == promiseOver && c.h.Spans[p.span].Outcome == history.OK
	}).longest().until
}

// levelsWithout are the promises to the levels of a hold without the ones that a release ended.
func (c *honestyCheck) levelsWithout(h *hold, released func(receivedPromise) bool) (levels levelPromises) {
	for _, p := range c.promises().of(h) {
		if p.notice && len(levels) > 1 || p.kind == promiseOver && !released(p) {
			continue
		}
		levels.apply(p)
	}
	return levels
}

// judgeRenewed judges how a hold that the lock renews by itself ended: while its client lives, is not paused and
// reaches the servers, its lease is renewed before it ends. Short leases are not judged: a busy machine may delay
// their renewal for as long as they last. A lock that retries after transient errors has failed a renewal that had half
// of the lease left without a fault, even if its commands are refused. Where messages are delivered by priorities, a
// renewal may wait behind each of the messages that a slow network delays.
func (c *honestyCheck) judgeRenewed() {
	if !c.o.states(promise.Watchdog) {
		return
	}
	excuses := c.excusesFor(c.o)
	for i, h := range refs(c.holds) {
		s := &c.h.Spans[h.span]
		end := h.lastPromise()
		if s.Lease != 0 || s.Valid == 0 || end == never || s.Valid-s.Return < c.o.slack()*9/10 {
			continue
		}
		if c.o.MaxHold > 0 && end >= later(s.Call, c.o.MaxHold) { // it may not be renewed any longer
			continue
		}
		if !(end < min(h.until, c.h.End)) && !(end-h.until < c.o.slack() && c.lossReported(h)) {
			continue
		}
		if c.o.applies(honestReopened) && c.reopened(h) {
			continue
		}
		t := min(end, h.until)
		traffic := segment{h.asked, t}
		if c.o.states(promise.RetriesTransientErrors) {
			traffic.from = max(h.asked, t-(s.Valid-s.Return)/2)
		}
		dis, client := excuses(scope{h.key, true, false}).dis, c.client(h.span)
		if c.o.applies(honestPaused) && dis.mayAffect(segment{h.asked, t}, client, history.AffectsClients) ||
			c.o.applies(honestOutage) && (dis.mayAffect(segment{h.asked, t}, client, history.AffectsData) ||
				dis.mayAffect(traffic, client, history.AffectsTraffic, history.AffectsCommands)) ||
			c.o.SimPriorities && c.o.applies(honestStarved) && dis.mayAffect(traffic, client, history.AffectsDelays) {
			continue
		}
		c.found.add(finding{rule: notRenewed, x: i, y: h.span, start: t, end: t})
	}
}

// judgeExpired judges the grants and renewals whose validity had ended when the client replied, by its own clock: such
// a hold cannot be relied on. A client that was paused may be late.
func (c *honestyCheck) judgeExpired() {
	for i, s := range refsAt(c.h.Spans, c.rare) {
		if !s.Expired || s.Op == history.OpInspect { // an inspection promises nothing
			continue
		}
		if c.o.applies(honestPaused) && c.dis.mayAffect(segment{s.Call, s.Return}, c.client(i), history.AffectsClients) {
			continue
		}
		c.found.add(finding{rule: grantOver, x: none, y: i, start: s.Return, end: s.Return})
	}
}

// noticeAt is the notice that an event is; nil if it is none.
func (v *view) noticeAt(event int32) *history.Notice {
	n, is := slices.BinarySearchFunc(v.h.Notices, event, func(n history.Notice, at int32) int {
		return cmp.Compare(n.Index, at)
	})
	if !is {
		return nil
	}
	return &v.h.Notices[n]
}

// lossReported reports whether the notice of a loss ended a hold.
func (v *view) lossReported(h *hold) bool {
	n := v.noticeAt(h.endEvent)
	return n != nil && n.F == history.Lost
}
