package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/internal/format"
)

// holdCountWords are the wordings of the rules of hold-count.
func holdCountWords() map[int]wording {
	return map[int]wording{
		wrongCount: {BrokenPromise, anOp, "the hold count in a reply equals the owner's hold count",
			"client $client got hold count $count for $lock at $return, but held it $note"},
		ownerRefused: {BrokenPromise, anOp, "an owner can acquire a reentrant lock that it holds",
			"client $client was refused $lock at $return although it had held it since $since"},
		takenAgain: {BrokenPromise, anOp, "a mutex that is not reentrant is not granted to its holder",
			"client $client was granted $lock at $return although it had held it since $since"},
		overReleased: {BrokenPromise, anOp, "a lock is released as often as it was acquired, and not more",
			"client $client released $lock at $return once more than it had acquired it, without an error"},
		freedTooSoon: {BrokenPromise, otherOp, "a lock that was acquired several times is free only after as many releases",
			"client $other released one of its holds of $lock at $since and still held it, but client $client was granted it " +
				"at $return"},
		heldTooLong: {BrokenPromise, endedHold, "a lock is free when it has been released as often as it was acquired",
			"client $other had released $lock as often as it had acquired it by $freed, but client $client was refused it at " +
				"$return"},
		upgraded: {BrokenPromise, nothing, "an owner that ${opposite}s is not granted the lock to $mode",
			"client $client was granted $lock to $mode at $return, although it held it to $opposite"},
		otherToken: {BrokenPromise, aHold, "a re-entry repeats the token of its hold",
			"client $client held $lock with token $former, entered it again at $return and got token $token"},
		strangerRefused: {BrokenPromise, nothing, "an owner that does not hold a lock is not refused as its holder",
			"client $client was refused $lock at $return because its owner $note, which is not true"},
	}
}

// holdCountViolation puts a finding of [HoldCount] into words.
func (v *view) holdCountViolation(f finding) Violation {
	switch f.rule {
	case serverCount:
		return v.wrongHoldViolation(f)
	case otherToken:
		f.x = v.levels[f.x].hold
	case wrongCount, ownerRefused, takenAgain:
		l := &v.levels[f.x]
		f.note = format.Count(l.depth, "time")
		if f.x = v.holds[l.hold].span; f.x == f.y { // the grant that began it
			f.x = none
		}
	}
	w := v.word(f, holdCountWords()[f.rule])
	switch f.rule {
	case freedTooSoon:
		w.Events = []int{int(v.h.Spans[f.x].Ended), int(v.h.Spans[f.y].Ended)}
	case wrongCount, ownerRefused, takenAgain, overReleased, otherToken: // two events: the grant of the hold, and the last
		w.Events = slices.Delete(w.Events, 1, len(w.Events)-1)
	}
	return w
}
