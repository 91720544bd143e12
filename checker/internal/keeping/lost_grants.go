package keeping

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file finds lost grants: a fault changed the data of servers, and before the end of the promise to a holder they
// no longer had its hold, which nobody had released. A server without the hold grants the lock to the next client that
// requests it. If somebody asked in time, two clients held the lock, and other properties are
// violated. If nobody did, the run has not shown that the lock is safe, so [property.Exercised] is undecided; of a lock
// that states that it keeps its grants ([promise.KeepsGrants]), [property.Honesty] is violated in both cases, unless
// the fault removed data by itself.
//
// Samples decide if they show the hold; otherwise the reply of the lock does, which refused the holder a release or a
// renewal because it did not hold the lock.

// FindLostGrants finds the grants that a fault may have removed, in the order of the holds. It needs the refusals that
// [honesty.judgeAnswers] has found.
func FindLostGrants(c *claims.Check) []claims.LostGrant {
	if !MayLoseGrants(c) {
		return nil
	}
	all := slices.Clone(c.Refused)
	// While a fault moves keys between servers, no sample shows which of them counts.
	moved := c.All.Any(segment.Of(0, c.H.End), func(f *excuse.FaultTime) bool { return f.States(history.AffectsSlots) })
	if s := c.Samples(); s != nil && !moved {
		all = slices.Concat(all, lostGrants(s, c.O), lostPermits(c, s))
	}
	all = slices.DeleteFunc(all, func(l claims.LostGrant) bool {
		h := &c.Holds[l.Hold]
		return !c.All.MayAffect(segment.Of(h.Asked, l.Seen), excuse.AnyClient, history.AffectsData) || c.Reopened(h)
	})
	for _, l := range refs.All(all) {
		l.Asked = askedAfter(c, l)
	}
	slices.SortStableFunc(all, func(a, b claims.LostGrant) int { return int(a.Hold - b.Hold) })
	return all
}

// MayLoseGrants reports whether a fault may have removed a grant. A lock of several keys ([promise.MultiKey]) is lost
// only with all of them, of which samples show one, and a refusal need not be about all.
func MayLoseGrants(c *claims.Check) bool {
	return c.All.MayAffect(segment.Of(0, c.H.End), excuse.AnyClient, history.AffectsData) && !c.O.States(promise.MultiKey)
}

// RefusedHold notes that the holder was refused a release or renewal inside its promise, after a fault that may have
// removed the hold. Samples that show the hold decide instead.
func RefusedHold(c *claims.Check, i int32, at time.Duration) {
	h := &c.Holds[i]
	if s := c.Samples(); s == nil || s.FirstNamed(h.At(),
		segment.Of(h.Asked, at)) == nil {
		c.Refused = append(c.Refused, claims.LostGrant{Hold: i, Seen: at, Until: h.LastPromise()})
	}
}

// JudgeLostGrants finds the grants that were lost although the lock states that it keeps them.
func JudgeLostGrants(c *claims.Check) {
	if !c.O.States(promise.KeepsGrants) {
		return
	}
	for _, l := range FindLostGrants(c) {
		if h := &c.Holds[l.Hold]; MustKeep(c, l) {
			c.Found.Add(finding.Finding{Rule: claims.GrantLost, X: refs.None, Y: h.Span, Start: l.Seen,
				End:  min(h.Until, l.Until),
				Note: LossText(c.View, l)})
		}
	}
}

// MustKeep reports whether a lock that keeps its grants had to keep this one: its promise had an end, and no fault may
// have removed data by itself.
func MustKeep(c *claims.Check, l claims.LostGrant) bool {
	during := segment.Of(c.Holds[l.Hold].Asked, l.Seen)
	return l.Until < segment.Never && !(c.O.Applies(claims.HonestRemoved) && c.All.Any(during, removesData))
}

// removesData reports whether a fault removes data of servers, or ends its time to live. A fault of unknown class may.
func removesData(f *excuse.FaultTime) bool {
	switch f.Class {
	case history.FaultRemoves, history.FaultForgets, history.FaultPlants, history.FaultSkews:
		return true
	}
	return f.Class == "" && !f.Noted && f.MayAffect(history.AffectsData)
}

// LastRequested is until when clients requested locks: the last acquire or try was invoked, or returned, by then.
func LastRequested(v *bounds.View) (last time.Duration) {
	for _, s := range refs.All(v.H.Spans) {
		if !excuse.IsAcquire(s.Op) {
			continue
		}
		if last = max(last, s.Call); s.Return < segment.Never {
			last = max(last, s.Return)
		}
	}
	return last
}

// LossText says how a grant was lost.
func LossText(v *bounds.View, l claims.LostGrant) string {
	h := &v.Holds[l.Hold]
	text := fmt.Sprintf("client %d was promised %s", v.Client(h.Span), finding.LockName(v.H.Keys[h.Key]))
	if l.Until < segment.Never {
		text += " until " + format.Instant(l.Until)
	}
	if l.Node == "" {
		return fmt.Sprintf("%s, but at %s the lock replied that it did not hold it", text, format.Instant(l.Seen))
	}
	return fmt.Sprintf("%s, but at %s %s no longer had it", text, format.Instant(l.Seen), l.Node)
}

// askedAfter reports whether another owner was granted the lock after a grant was lost, while its holder relied on it
// and was promised it. Of a semaphore that is so only if there were too few permits for both.
func askedAfter(c *claims.Check, l *claims.LostGrant) bool {
	h := &c.Holds[l.Hold]
	end, limit := min(h.Until, l.Until), c.H.Limit(h.Key)
	holds := c.ByKey[h.Key]
	n := sort.Search(len(holds), func(n int) bool { return c.Holds[holds[n]].From > h.From })
	for ; n < len(holds) && c.Holds[holds[n]].From < end; n++ {
		g := &c.Holds[holds[n]]
		if g.Owner == h.Owner || g.Reader && h.Reader {
			continue
		}
		if limit == 0 || c.PermitsAt(holds[max(0, n-ledger.MaxLookBack):n+1], g.From) > int64(limit) {
			return true
		}
	}
	return false
}
