package linear

import (
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// sampledParts is how many parts of a key are searched although the sweep decides it.
const sampledParts = 3

// cuts are where a key's operations fall apart: nothing was in flight, and the lock was certainly free. In any legal
// order all that is before a cut comes before all that is after it, and the lock is free in between: so the key has a
// legal order if and only if each part has one (and, for tokens, if they grow from part to part, which the sweep
// judges). After an operation of unknown outcome, or a hold that was not released, there is no cut.
//
// A cut is the index in k.spans of the first operation after it.
func cuts(v *bounds.View, k *KeyOps, slack time.Duration) []int32 {
	var at []int32
	out := int64(0)
	last := time.Duration(-1) // latest return so far
	for n, i := range k.Spans {
		s := &v.H.Spans[i]
		if out == 0 && n > 0 && s.Call > segment.Later(last, slack) {
			at = append(at, int32(n))
		}
		if last = max(last, s.Return); last == segment.Never {
			break
		}
		permits := int64(1)
		if k.Kind == search.Semaphore {
			permits = int64(s.Permits)
		}
		switch {
		case s.Outcome == history.Fail && s.Op == history.OpRelease: // the hold is lost, or still there
			return at
		case s.Outcome == history.Fail:
		case s.Op == history.OpRelease:
			out -= permits
		default:
			out += permits
		}
	}
	return at
}

// inParts searches a key that is too long to be searched whole, and in which the sweep found no flaw. It returns
// whether that has decided the key. Where the sweep decides, some parts are searched as well, as a second opinion.
func (c *check) inParts(k *KeyOps) bool {
	cuts := cuts(c.View, k, c.o.ClockError)
	cuts = append(cuts, int32(len(k.Spans)))
	if k.Exact {
		c.sample(k, cuts)
		return false
	}
	begin, legal := int32(0), true
	for n, cut := range cuts {
		if n+1 < len(cuts) && cuts[n+1]-begin <= maxSearched {
			continue
		}
		if size := int(cut - begin); size > maxSearched || size > c.budget || k.Kind.Fenced() {
			return false
		}
		if c.part(k, k.Spans[begin:cut], n+1 == len(cuts), true) != porcupine.Ok {
			legal = false
			break
		}
		begin = cut
	}
	return legal || c.found.Total > 0
}

// sample searches a few parts between cuts, spread over the key.
func (c *check) sample(k *KeyOps, cuts []int32) {
	for n := range min(sampledParts, len(cuts)-1) {
		at := n * (len(cuts) - 1) / sampledParts
		end := at
		for end+1 < len(cuts) && cuts[end+1]-cuts[at] <= maxSampled {
			end++
		}
		if end > at && int(cuts[end]-cuts[at]) <= c.budget {
			c.part(k, k.Spans[cuts[at]:cuts[end]], end == len(cuts)-1, false)
		}
	}
}

// part searches the operations between two cuts; last says whether they are the last of the key. If the part is
// needed, a search without a result leaves the key undecided.
func (c *check) part(k *KeyOps, spans []int32, last, needed bool) porcupine.CheckResult {
	p := *k
	if p.Spans = spans; !last {
		p.Drops = nil // no hold was lost before the last cut
	}
	c.parts++
	return c.compare(&p, ModelOps(c.View, &p), 0, needed)
}
