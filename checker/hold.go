package checker

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Hold is one owner's possession of a lock: from the outermost acquire that was granted to the first event after
// which the owner no longer relied on the lock. Reading and writing are separate holds, also if one begins
// inside the other. Of a semaphore each acquire is a hold, and a release returns the permits that were acquired last.
type Hold struct {
	Key       int32         // index into History.Keys
	Owner     int32         // index into History.Owners
	Span      int32         // index into History.Spans: the outermost acquire
	Client    int           // whose process acquired it
	Token     uint64        // fencing token of the grant; 0: none
	Permits   int32         // acquired with it; 0: the key is not a semaphore
	Reader    bool          // shared with other readers; false: exclusive
	Uncertain bool          // which holds its owner had is unknown: no checker judges them
	Asked     time.Duration // acquire invoked
	From      time.Duration // acquire returned
	Until     time.Duration // when the owner stopped relying on it, see End; history.Infinity if it did not
	Promises  []Promise     // disjoint, by time
	End       HoldEnd       // the event that ended it
	Lease     LeaseStart    // from when on the first promise counts
	Granted   int32         // index of the event that completed the acquire
	Ended     int32         // index of the event that End names; -1 if none did
}

// Promise is an interval for which the lock was promised. A renewal in time extends the promise before it; a late
// renewal begins a new one.
type Promise struct {
	From, Until time.Duration // Until is history.Infinity if the lock was granted without a lease
}

// HoldEnd is the reason why a hold ended, as a phrase for people.
type HoldEnd string

// The ends of a hold.
const (
	StillHeld      HoldEnd = "still held at the end"
	Released       HoldEnd = "released"
	ReleaseUnknown HoldEnd = "release of unknown outcome"
	ReleaseRefused HoldEnd = "release refused"
	RenewalRefused HoldEnd = "renewal refused"
	AcquiredAgain  HoldEnd = "acquired again, perhaps after its lease"
	LossReported   HoldEnd = "loss reported"
	Crashed        HoldEnd = "client crashed"
)

// FindHolds returns every hold of a history in the order of the grants, also of owners that [Judge] cannot judge, see
// [Hold.Uncertain]. Of the options Permits, LockKind, MayBeDown and ReportDelay matter.
func FindHolds(h *history.History, o Options) []Hold {
	h, o.values = o.withLimits(h), h.Samples
	v := bareView(h, o)
	v.fold(true)
	v.countLeases(o)
	v.endReported(o.ReportDelay)
	holds := make([]Hold, len(v.holds))
	for i := range v.holds {
		holds[i] = v.export(&v.holds[i])
	}
	return holds
}

func (v *view) export(h *hold) Hold {
	s := &v.h.Spans[h.span]
	x := Hold{Key: h.key, Owner: h.owner, Span: h.span, Client: v.client(h.span), Token: h.token, Reader: h.reader,
		Uncertain: v.ownerOrder[h.owner] == ordUnknown, Asked: h.asked, From: h.from, Until: h.until, End: v.endOf(h),
		Granted: s.Ended, Ended: h.endEvent, Promises: make([]Promise, 0, 1+len(h.extra().laterPromises))}
	x.Lease = v.leaseStart(h)
	if v.h.Limit(h.key) != 0 {
		x.Permits = s.Permits
	}
	for i := -1; i < len(h.extra().laterPromises); i++ {
		p := h.promises(i)
		x.Promises = append(x.Promises, Promise{p.from, p.until})
	}
	return x
}

// endOf finds the kind of the event that ended a hold.
func (v *view) endOf(h *hold) HoldEnd {
	if h.endEvent < 0 {
		return StillHeld
	}
	if n := v.noticeAt(h.endEvent); n != nil && n.F == history.Crash {
		return Crashed
	} else if n != nil {
		return LossReported
	}
	spans := v.h.Spans
	n := sort.Search(len(spans), func(n int) bool { return spans[n].Invoked >= h.endEvent })
	if n == len(spans) || spans[n].Invoked != h.endEvent {
		return RenewalRefused
	}
	switch s := &spans[n]; {
	case isAcquire(s.Op):
		return AcquiredAgain
	case s.Outcome == history.OK:
		return Released
	case s.Outcome == history.Fail:
		return ReleaseRefused
	}
	return ReleaseUnknown
}
