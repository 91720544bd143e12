package holdcount

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Rules are the rules of hold-count.
func Rules() finding.Rules {
	return finding.Rules{
		WrongCount: {Name: "wrong-count", Class: property.BrokenPromise, X: finding.AnOp,
			Sentence: "the hold count in a reply equals the owner's hold count",
			Text:     "client $client got hold count $count for $lock at $return, but held it $note"},
		OwnerRefused: {Name: "owner-refused", Class: property.BrokenPromise, X: finding.AnOp,
			Sentence: "an owner can acquire a reentrant lock that it holds",
			Text:     "client $client was refused $lock at $return although it had held it since $since"},
		TakenAgain: {Name: "taken-again", Class: property.BrokenPromise, X: finding.AnOp,
			Sentence: "a mutex that is not reentrant is not granted to its holder",
			Text:     "client $client was granted $lock at $return although it had held it since $since"},
		OverReleased: {Name: "over-release", Class: property.BrokenPromise, X: finding.AnOp,
			Sentence: "a lock is released as often as it was acquired, and not more",
			Text:     "client $client released $lock at $return once more than it had acquired it, without an error"},
		FreedTooSoon: {Name: "freed-too-soon", Class: property.BrokenPromise, X: finding.OtherOp,
			Sentence: "a lock that was acquired several times is free only after as many releases",
			Text: "client $other released one of its holds of $lock at $since and still held it, but client $client was " +
				"granted it at $return"},
		HeldTooLong: {Name: "held-too-long", Class: property.BrokenPromise, X: finding.EndedHold,
			Sentence: "a lock is free when it has been released as often as it was acquired",
			Text: "client $other had released $lock as often as it had acquired it by $freed, but client $client was refused " +
				"it at $return"},
		upgraded: {Name: "upgraded", Class: property.BrokenPromise,
			Sentence: "an owner that ${opposite}s is not granted the lock to $mode",
			Text:     "client $client was granted $lock to $mode at $return, although it held it to $opposite"},
		otherToken: {Name: "other-token", Class: property.BrokenPromise, X: finding.AHold,
			Sentence: "a re-entry repeats the token of its hold",
			Text:     "client $client held $lock with token $former, entered it again at $return and got token $token"},
		strangerRefused: {Name: "refused-as-holder", Class: property.BrokenPromise,
			Sentence: "an owner that does not hold a lock is not refused as its holder",
			Text:     "client $client was refused $lock at $return because its owner $note, which is not true"},
		CountLapsed: {Name: "promise-over"}, CountUnproved: {Name: "unknown-depth"},
		serverCount: {Name: "server-count"},
	}
}

// holdCountViolation puts a finding of [property.HoldCount] into words.
func holdCountViolation(v *bounds.View, f finding.Finding) property.Violation {
	switch f.Rule {
	case serverCount:
		return finding.WrongHoldViolation(v, f)
	case otherToken:
		f.X = v.Levels[f.X].Hold
	case WrongCount, OwnerRefused, TakenAgain:
		l := &v.Levels[f.X]
		f.Note = format.Count(l.Depth, "time")
		if f.X = v.Holds[l.Hold].Span; f.X == f.Y { // the grant that began it
			f.X = refs.None
		}
	}
	w := finding.Word(v, f, Rules()[f.Rule])
	switch f.Rule {
	case FreedTooSoon:
		w.Events = []int{int(v.H.Spans[f.X].Ended), int(v.H.Spans[f.Y].Ended)}
	case WrongCount, OwnerRefused, TakenAgain, OverReleased, otherToken: // two events: the grant of the hold, and the last
		w.Events = slices.Delete(w.Events, 1, len(w.Events)-1)
	}
	return w
}
