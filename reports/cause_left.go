package reports

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

func leftBehindMechanism() mechanism {
	return mechanism{name: "left-behind", find: findLeftBehind, advice: []adviceItem{{
		Text: "When an acquire gives up without a reply, remove what it may have created, and retry until a server " +
			"replies. The client has to choose the id of the request, so that it can find what the request created.",
		Cost: "a request for each acquire that gives up; until it is answered, the outcome of the acquire is unknown",
	}}}
}

// findLeftBehind: the reply to an acquire was lost, and what it created stayed at the servers.
func findLeftBehind(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Leak {
		return nil
	}
	for c, f := range q.lostReplies(false) {
		asked := q.unanswered(c, f)
		if asked == nil {
			continue
		}
		lost := "was lost at"
		if len(f.effects) == 0 || f.effectTime() < asked.Call || f.effectTime() > asked.Return {
			lost = "did not come: its replies were dropped from"
		}
		left := "the acquire had created was not removed"
		if asked.Op == history.OpRelease {
			left = "it should have removed stayed"
		}
		text := fmt.Sprintf("left behind: the reply to the %s of %s by %s, sent at %s, %s %s (%s), and what %s", asked.Op,
			quote(q.v.Key), clientName(c), q.s.instant(eventAt(asked.Invoked, asked.Call)), lost, q.s.instant(f.took()),
			quote(f.name), left)
		found := &cause{faults: []*injection{f}, text: text, of: &c, steps: []storyStep{q.step(int(asked.Invoked))}}
		if kept := q.keptBy(c, f.effectTime()); kept != nil {
			found.text += fmt.Sprintf(": %s still had it at %s, and it %s", kept.Node, q.s.instant(sampleAt(kept)), q.r.ends())
			found.steps = append(found.steps, storyStep{Time: kept.Time, Event: -1, weight: 9,
				Text: fmt.Sprintf("%s still has the key of %s", kept.Node, clientName(c))})
		}
		return found
	}
	return nil
}

// ends is how a key without an expiry ends, as a predicate of "and it".
func (r *Run) ends() string {
	if r.byMajority() {
		return r.endless(false)
	}
	return "has no expiry"
}

// keptBy is the last sample by the end of the violation in which a node has the key without an expiry, if it had that
// of this client in each sample since t; nil if there is none.
func (q *inquiry) keptBy(client int, t time.Duration) (kept *history.Sample) {
	for _, node := range q.r.witness.nodes {
		var last *history.Sample
		samples := q.r.witness.during(node, t, q.v.End)
		for i := range samples {
			k, held := samples[i].Keys[q.v.Key]
			if held && k.TTL < 0 && q.r.heldBy(q.v.Key, &samples[i]).client == client {
				last = &samples[i]
			} else if last != nil {
				last = nil
				break
			}
		}
		if last != nil && (kept == nil || last.Time > kept.Time) {
			kept = last
		}
	}
	return kept
}

// lostReplies are the faults that drop a client's replies, injected by the end of the violation, each with the client;
// if observed, those that were seen to have dropped one by then.
func (q *inquiry) lostReplies(observed bool) iter.Seq2[int, *injection] {
	return func(yield func(int, *injection) bool) {
		for i := range q.r.faults {
			f := &q.r.faults[i]
			c, client := cluster.ClientNumber(f.target)
			lost := client && strings.HasSuffix(f.name, "reply-lost") && f.effectTime() <= q.v.End
			if lost && (!observed || len(f.effects) > 0) && !yield(c, f) {
				return
			}
		}
	}
}

// unanswered is the operation of a client whose reply f may have dropped, and that did not succeed: an acquire that was
// in flight when f took effect or else an acquire or a release during f; nil if there is none.
func (q *inquiry) unanswered(client int, f *injection) (found *history.Span) {
	h := q.r.History
	for i := range h.Spans {
		s := &h.Spans[i]
		acquire := s.Op == history.OpAcquire || s.Op == history.OpTry
		if !acquire && s.Op != history.OpRelease || s.Process.Client(h.Clients) != client ||
			s.Outcome == history.OK || q.r.keyName(s.Key) != q.v.Key {
			continue
		}
		if acquire && len(f.effects) > 0 && s.Call <= f.effectTime() && s.Return >= f.effectTime() {
			return s
		}
		if found == nil && f.inject <= s.Return && f.heal >= s.Call {
			found = s
		}
	}
	return found
}
