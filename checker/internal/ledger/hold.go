package ledger

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// EndOf finds the kind of the event that ended a hold.
func (v *View) EndOf(h *Hold) property.HoldEnd {
	if h.EndEvent < 0 {
		return property.StillHeld
	}
	if n := v.NoticeAt(h.EndEvent); n != nil && n.F == history.Crash {
		return property.Crashed
	} else if n != nil {
		return property.LossReported
	}
	spans := v.H.Spans
	n := sort.Search(len(spans), func(n int) bool { return spans[n].Invoked >= h.EndEvent })
	if n == len(spans) || spans[n].Invoked != h.EndEvent {
		return property.RenewalRefused
	}
	switch s := &spans[n]; {
	case excuse.IsAcquire(s.Op):
		return property.AcquiredAgain
	case s.Outcome == history.OK:
		return property.Released
	case s.Outcome == history.Fail:
		return property.ReleaseRefused
	}
	return property.ReleaseUnknown
}

// OrderingToken is the token by which the order of a hold is judged: none if its promise had ended when the slow
// reply came. Then the grant may have expired long ago, before others that returned sooner.
func (h *Hold) OrderingToken() uint64 {
	if h.ExpiredOnArrival {
		return 0
	}
	return h.Token
}

// Ending is how a hold ended, as far as its owner knows.
type Ending uint8

const (
	endOpen     Ending = iota // not at all
	EndReleased               // released
	EndUnknown                // by a release of unknown outcome
	EndLost                   // loss reported, client crashed, renewal or release refused, or released by force
)

// Hold is one owner's possession of a lock, see [Hold]. A writer that acquires the lock as a reader as well, and then
// releases it as a writer, is a reader from then on.
type Hold struct {
	Asked            time.Duration // acquire invoked
	From             time.Duration // acquire returned: from here on it is certain
	Until            time.Duration // end of belief: the first of release invoked, loss reported and crash
	Core             time.Duration // end of the part in every legal order; after until if the loss was not real
	FreeBy           time.Duration // release returned, or one by force; never if that is unknown
	Valid            time.Duration // end of the promise made with the grant, with all renewals that came in time
	extras           *holdExtra    // see extra and mutableExtra; nil: all zero
	Token            uint64
	Key              int32
	Owner            int32
	Span             int32 // the outermost acquire
	EndEvent         int32 // index of the event that ended belief; -1 if none did
	next             int32 // another open hold of the same owner, or -1
	depth            int32 // acquires that were not released; of a semaphore permits
	Ending           Ending
	Reader           bool
	Inner            bool // begun inside a hold of the same owner in the other mode
	Ambiguous        bool // a release without a mode may have been of this one, or of one in the other mode
	ExpiredOnArrival bool // its promise had ended when the grant returned, because the reply was slow
	Remains          bool // requested while servers may have kept a hold that was lost: they may keep that one
}
