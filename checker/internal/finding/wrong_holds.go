package finding

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// AddWrongHolds adds the findings of one kind about holds at servers.
func AddWrongHolds(v *bounds.View, kind servers.WrongHoldKind, rule int, found *Findings) {
	seen := v.Samples()
	if seen == nil {
		return
	}
	for _, k := range seen.WrongHolds() {
		if k.Kind == kind {
			found.Add(Finding{Rule: rule, X: refs.None, Y: k.Span, Start: k.Since, End: k.Seen, Note: k})
		}
	}
}

// WrongHoldViolation describes a finding about a hold at a server.
func WrongHoldViolation(v *bounds.View, f Finding) property.Violation {
	k, op := f.Note.(servers.WrongHold), v.H.Spans[f.Y].Op
	f.Note = k.Node
	w := Rule{Class: property.BrokenPromise}
	switch did := "was refused"; k.Kind {
	case servers.HeldLeftBehind:
		did = Either(op == history.OpRelease, "requested to release", "gave up its acquire of")
		w.Sentence = "a lock that retries releases leaves no hold on a server that replies"
		w.Text = "client $client " + did + " $lock at $start, but at $end $note still kept it for that owner"
	case servers.HeldForNobody:
		switch op {
		case history.OpRelease:
			did = "released"
		case history.OpForceRelease:
			did = "released by force"
		}
		w.Sentence = "a server does not keep a hold that was released or refused"
		w.Text = "client $client " + did + " $lock at $start, but at $end $note kept it for that owner"
	case servers.HeldMiscounted:
		w.Sentence = "the hold count on a server equals the owner's hold count"
		w.Text = fmt.Sprintf("client $client held $lock %s, but at $end its hold count at $note was %d",
			format.Count(k.Depth, "time"), k.Value.Count)
	case servers.HeldTooLongForLease:
		w.Sentence = "a server keeps a hold no longer than its lease"
		w.Text = fmt.Sprintf("client $client holds $lock with a lease of %s, but at $end $note kept it for another %s",
			format.Duration(k.Lease), format.Duration(k.Value.Rest))
	}
	return Word(v, f, w)
}

// LastRequest is the last acquire or try of a key before t; none if there is none.
func LastRequest(v *bounds.View, key int32, t time.Duration) int32 {
	last := refs.None
	for i, s := range refs.All(v.H.Spans) {
		if s.Key == key && s.Ended >= 0 && s.Call <= t && excuse.IsAcquire(s.Op) &&
			(last == refs.None || cmp.Compare(s.Call, v.H.Spans[last].Call) >= 0) {
			last = i
		}
	}
	return last
}

// KeptPermits says how many permits a server kept.
func KeptPermits(v *bounds.View, x *history.Sample, key int32) string {
	name := v.H.Keys[key]
	return fmt.Sprintf("%s kept %s of %s", x.Node, format.Count(x.Keys[name].Permits, "permit"), LockName(name))
}
