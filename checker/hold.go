package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// Hold is one owner's possession of a lock: from the outermost acquire that was granted to the first event after
// which the owner no longer relied on the lock. Reading and writing are separate holds, also if one begins
// inside the other. Of a semaphore each acquire is a hold, and a release returns the permits that were acquired last.
type Hold struct {
	Key       int32               // index into History.Keys
	Owner     int32               // index into History.Owners
	Span      int32               // index into History.Spans: the outermost acquire
	Client    int                 // whose process acquired it
	Token     uint64              // fencing token of the grant; 0: none
	Permits   int32               // acquired with it; 0: the key is not a semaphore
	Reader    bool                // shared with other readers; false: exclusive
	Uncertain bool                // which holds its owner had is unknown: no checker judges them
	Asked     time.Duration       // acquire invoked
	From      time.Duration       // acquire returned
	Until     time.Duration       // when the owner stopped relying on it, see End; history.Infinity if it did not
	Promises  []Promise           // disjoint, by time
	End       property.HoldEnd    // the event that ended it
	Lease     property.LeaseStart // from when on the first promise counts
	Granted   int32               // index of the event that completed the acquire
	Ended     int32               // index of the event that End names; -1 if none did
}

// Promise is an interval for which the lock was promised. A renewal in time extends the promise before it; a late
// renewal begins a new one.
type Promise struct {
	From, Until time.Duration // Until is history.Infinity if the lock was granted without a lease
}

// FindHolds returns every hold of a history in the order of the grants, also of owners that [Judge] cannot judge, see
// [Hold.Uncertain]. Of the options Permits, LockKind, MayBeDown and ReportDelay matter.
func FindHolds(h *history.History, o property.Options) []Hold {
	return findHolds(h, given.Options{Options: o})
}

func findHolds(h *history.History, o given.Options) []Hold {
	h, o.Values = o.WithLimits(h), h.Samples
	v := ledger.Every(h, o)
	holds := make([]Hold, len(v.Holds))
	for i := range v.Holds {
		holds[i] = export(v, &v.Holds[i])
	}
	return holds
}

func export(v *ledger.View, h *ledger.Hold) Hold {
	s := &v.H.Spans[h.Span]
	x := Hold{Key: h.Key, Owner: h.Owner, Span: h.Span, Client: v.Client(h.Span), Token: h.Token, Reader: h.Reader,
		Uncertain: v.OwnerOrder[h.Owner] == ledger.OrdUnknown, Asked: h.Asked, From: h.From, Until: h.Until, End: v.EndOf(h),
		Granted: s.Ended, Ended: h.EndEvent, Promises: make([]Promise, 0, 1+len(h.Extra().LaterPromises))}
	x.Lease = v.LeaseStart(h)
	if v.H.Limit(h.Key) != 0 {
		x.Permits = s.Permits
	}
	for i := -1; i < len(h.Extra().LaterPromises); i++ {
		p := h.Promises(i)
		x.Promises = append(x.Promises, Promise{p.From, p.Until})
	}
	return x
}
