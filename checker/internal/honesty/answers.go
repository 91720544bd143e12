package honesty

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/keeping"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about replies to the holder: refusals although it holds the lock, and successes although it was refused
// before.

// judgeAnswers judges the replies to releases and renewals of owners that were denied their hold, or lost it.
func judgeAnswers(c *claims.Check) {
	forced, lost := c.Forced(), make(map[ledger.OwnerKey][]int32) // notices
	for i, n := range refs.All(c.H.Notices) {
		if n.F == history.Lost && n.Left == 0 {
			at := ledger.OfNotice(n)
			lost[at] = append(lost[at], i)
		}
	}
	if len(forced)+len(lost) == 0 && !c.HasRare(func(s *history.Span) bool { return s.Denied }) {
		return
	}
	var list []int32
	for i, s := range refs.All(c.H.Spans) {
		if claims.AboutHold(s.Op) {
			list = append(list, i)
		}
	}
	ops := kept.NewOperations(c.H, list)
	for owner := range int32(len(c.H.Owners)) {
		for own := range ops.ByKey(owner) {
			at := ledger.OwnerKey{Owner: owner, Key: c.H.Spans[own[0]].Key}
			judgeAnswersTo(c, at, own, forced[at.Key], lost[at])
		}
	}
}

// judgeAnswersTo judges the replies to one owner at one key.
func judgeAnswersTo(c *claims.Check, at ledger.OwnerKey, list, forced, lost []int32) {
	suspect, client := len(lost) > 0, c.Client(list[0])
	for i, s := range refs.At(c.H.Spans, list) {
		suspect = suspect || s.Denied || len(forced) > 0 && (s.Op == history.OpRenew || s.Op == history.OpRelease)
		if c.Client(i) != client {
			return // it is not known which of them holds the lock
		}
	}
	if !suspect || client == excuse.AnyClient || c.IssueOrder[at.Owner] != ledger.OrdSequential ||
		!oneHold(c, at.Key, list) {
		return
	}
	if c.OwnerOrder[at.Owner] == ledger.OrdSequential { // else it may have had a hold that it did not know of
		revivals(c, list, lost)
	}
	judgeForced(c, list, forced)
	for _, i := range list {
		if c.H.Spans[i].Denied {
			judgeDenied(c, i)
		}
	}
}

// oneHold reports whether the operations of an owner at a key are all about the same hold, at a time: a semaphore may
// give it several, and which of them a reply is about is not known.
func oneHold(c *claims.Check, key int32, list []int32) bool {
	if c.H.Limit(key) == 0 {
		return true
	}
	acquires := 0
	for _, s := range refs.At(c.H.Spans, list) {
		if excuse.IsAcquire(s.Op) && (s.Outcome != history.Fail || s.Undone) {
			acquires++
		}
	}
	return acquires <= 1
}

// revivals judges the operations of one owner at one key: after it was denied its hold, or the hold was reported
// lost, nothing but another acquire gives it one. An owner that lost its write may still read. A release may succeed
// after a reported loss, also if a renewal was denied because of it: the lock may have lasted for longer than was
// promised.
func revivals(c *claims.Check, list, notices []int32) {
	denied, gone := make(map[bool]int32), segment.Never // denied: by Write; gone: by a notice
	for i, s := range refs.At(c.H.Spans, list) {
		for len(notices) > 0 && c.H.Notices[notices[0]].Index < s.Invoked {
			gone = c.H.Notices[notices[0]].Time
			notices = notices[1:]
		}
		switch {
		case excuse.IsAcquire(s.Op):
			if s.Outcome != history.Fail {
				clear(denied)
				gone = segment.Never
			}
		case s.Op == history.OpForceRelease:
		case s.Denied && s.Op == history.OpRenew && (gone < segment.Never || len(notices) > 0 &&
			c.H.Notices[notices[0]].Index < s.Ended): // its client knows of the loss, and does not ask the servers
		case s.Denied:
			denied[s.Write] = i
		case s.Outcome != history.OK || s.Op != history.OpRenew && s.Op != history.OpRelease:
		default:
			x, was := denied[s.Write]
			if !was && (gone == segment.Never || s.Op != history.OpRenew || s.Call <= gone) {
				continue
			}
			why := "its loss had been reported"
			if was {
				why = fmt.Sprintf("the lock had replied at %s that it did not hold it", format.Instant(c.H.Spans[x].Return))
			} else {
				x = refs.None
			}
			c.Found.Add(finding.Finding{Rule: claims.Revived, X: x, Y: i, Start: s.Call, End: s.Return, Note: why})
		}
	}
}

// judgeForced judges the operations of one owner at one key: after a forced release, nothing but another acquire gives
// it a hold.
func judgeForced(c *claims.Check, list, forced []int32) {
	var grant *history.Span // the last one; nil: unknown
	for i, s := range refs.At(c.H.Spans, list) {
		switch {
		case excuse.IsAcquire(s.Op):
			grant = grantAfter(grant, s)
		case s.Outcome != history.OK || grant == nil || s.Op != history.OpRenew && s.Op != history.OpRelease:
		default:
			if by := c.ForcedBetween(forced, grant, s); by != refs.None {
				c.Found.Add(finding.Finding{Rule: claims.NotForced, X: by, Y: i, Start: s.Call, End: s.Return})
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
func judgeDenied(c *claims.Check, i int32) {
	s := &c.H.Spans[i]
	n, held := c.LastHold(s.Owner, s.Key, s.Call)
	if !held {
		return
	}
	h := &c.Holds[n]
	if h.Reader == s.Write || h.EndEvent != s.Invoked && h.EndEvent != s.Ended { // the other mode, or it had ended before
		return
	}
	if !(h.PromisedAt(s.Call) && h.PromisedAt(s.Return)) || !allPromised(c, h, s.Return) ||
		s.Return >= c.UnrenewedFrom(h) {
		return
	}
	if c.Touched(c.Dis, segment.Of(h.Asked, s.Return)) {
		keeping.RefusedHold(c, n, s.Return)
		return
	}
	if c.H.Limit(h.Key) == 0 && mayBeGrantedBy(c, n, s.Return) { // other holders of permits do not matter
		return
	}
	c.Found.Add(finding.Finding{Rule: claims.DeniedHolder, X: n, Y: i, Start: s.Call, End: s.Return,
		Note: finding.PromiseEnd(h.LastPromise())})
}

// allPromised reports whether the promise to each level of a hold that ended was in force at t.
func allPromised(c *claims.Check, h *ledger.Hold, t time.Duration) bool {
	return !slices.ContainsFunc(c.LevelsLeft(h), func(p claims.ReceivedPromise) bool { return p.Until <= t })
}

// judgeRenewed judges how a hold that the lock renews by itself ended: while its client lives, is not paused and
// reaches the servers, its lease is renewed before it ends. Short leases are not judged: a busy machine may delay
// their renewal for as long as they last. A lock that retries after transient errors has failed a renewal that had half
// of the lease left without a fault, even if its commands are refused. Where messages are delivered by priorities, a
// renewal may wait behind each of the messages that a slow network delays.
func judgeRenewed(c *claims.Check) {
	if !c.O.States(promise.Watchdog) {
		return
	}
	excuses := c.ExcusesFor(c.O)
	for i, h := range refs.All(c.Holds) {
		s := &c.H.Spans[h.Span]
		end := h.LastPromise()
		if s.Lease != 0 || s.Valid == 0 || end == segment.Never || s.Valid-s.Return < c.O.Slack()*9/10 {
			continue
		}
		if c.O.MaxHold > 0 && end >= segment.Later(s.Call, c.O.MaxHold) { // it may not be renewed any longer
			continue
		}
		if !(end < min(h.Until, c.H.End)) && !(end-h.Until < c.O.Slack() && c.LossReported(h)) {
			continue
		}
		if c.O.Applies(claims.HonestReopened) && c.Reopened(h) {
			continue
		}
		t := min(end, h.Until)
		traffic := segment.Of(h.Asked, t)
		if c.O.States(promise.RetriesTransientErrors) {
			traffic.From = max(h.Asked, t-(s.Valid-s.Return)/2)
		}
		dis, client := excuses(excuse.Scope{Key: h.Key, ReleaseOrRenewal: true}).Dis, c.Client(h.Span)
		if c.O.Applies(claims.HonestPaused) && dis.MayAffect(segment.Of(h.Asked, t), client, history.AffectsClients) ||
			c.O.Applies(claims.HonestOutage) && (dis.MayAffect(segment.Of(h.Asked, t), client, history.AffectsData) ||
				dis.MayAffect(traffic, client, history.AffectsTraffic, history.AffectsCommands)) ||
			c.O.SimPriorities && c.O.Applies(claims.HonestStarved) && dis.MayAffect(traffic, client, history.AffectsDelays) {
			continue
		}
		c.Found.Add(finding.Finding{Rule: claims.NotRenewed, X: i, Y: h.Span, Start: t, End: t})
	}
}

// judgeExpired judges the grants and renewals whose validity had ended when the client replied, by its own clock: such
// a hold cannot be relied on. A client that was paused may be late.
func judgeExpired(c *claims.Check) {
	for i, s := range refs.At(c.H.Spans, c.Rare) {
		if !s.Expired || s.Op == history.OpInspect { // an inspection promises nothing
			continue
		}
		if c.O.Applies(claims.HonestPaused) && c.Dis.MayAffect(segment.Of(s.Call, s.Return), c.Client(i),
			history.AffectsClients) {
			continue
		}
		c.Found.Add(finding.Finding{Rule: claims.GrantOver, X: refs.None, Y: i, Start: s.Return, End: s.Return})
	}
}
