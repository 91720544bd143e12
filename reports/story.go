package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Story is a run in words, generated from its data alone. Text may have names in
// `backquotes`. It claims nothing that the data does not show.
type Story struct {
	Sentence string   `json:"sentence"`        // why the verdict is what it is
	Steps    []Moment `json:"steps,omitempty"` // cause and effect in the order of time, at most 6
	Facts    []string `json:"facts,omitempty"` // what else to know, most important first
	Advice   []Advice `json:"advice,omitempty"`
	Repeat   string   `json:"repeat,omitempty"` // the command that runs it again
}

// Moment is one link of the causal chain.
type Moment struct {
	N     int           `json:"n"` // from 1; also the marker in the picture
	Time  time.Duration `json:"time_ns"`
	Event int           `json:"event"` // index in the history; -1: seen by the witness
	Text  string        `json:"text"`

	weight int // the heaviest stay if there are more than 6
}

// Advice is something that would have helped.
type Advice struct {
	Text     string `json:"text"`
	Measured bool   `json:"measured"` // shown by this run's data; false: advice
}

// Story is the run in words.
func (r *Run) Story() Story { return r.story }

// tell writes the story of a run.
func tell(r *Run) Story {
	s := Story{Repeat: r.Manifest.Repeat}
	switch {
	case !r.Judged:
		s.Sentence = "this run has not been judged"
	case r.Judgement.Verdict == checker.Unsafe:
		tellUnsafe(r, &s)
	case r.Judgement.Verdict == checker.Inconclusive:
		s.Sentence = tellInconclusive(r)
	default:
		s.Sentence = tellSafe(r)
	}
	if len(s.Steps) == 0 {
		s.Steps = chainOfFaults(r)
	}
	s.Sentence = format.Capitalize(s.Sentence)
	s.Facts = facts(r)
	return s
}

func tellUnsafe(r *Run, s *Story) {
	v := r.worst()
	if v == nil {
		s.Sentence = r.Judgement.Sentence
		return
	}
	p := pairOf(r, v)
	if p == nil {
		s.Sentence = v.Text
		if s.Sentence == "" {
			s.Sentence = r.Judgement.Sentence
		}
		s.Steps = chainOfEvents(r, v)
		s.Advice = adviseWithoutPair(r, v)
		return
	}
	s.Sentence = p.sentence()
	s.Steps = p.chain()
	s.Advice = p.advise()
}

// tellInconclusive says what was not tested.
func tellInconclusive(r *Run) string {
	var why []string
	for _, res := range r.Judgement.Results {
		open := res.Outcome == checker.Undecided || res.Property == checker.Bite && res.Outcome == checker.Violated
		if open && res.Summary != "" {
			why = append(why, fmt.Sprintf("%s: %s", res.Property, strings.TrimSuffix(res.Summary, ".")))
		}
	}
	if len(why) == 0 {
		return r.Judgement.Sentence
	}
	return "nothing was found, but the run proves nothing: " + strings.Join(why, "; ")
}

// tellSafe says what the lock survived.
func tellSafe(r *Run) string {
	var parts []string
	if hits := survived(r); hits != "" {
		parts = append(parts, hits)
	}
	if n := len(r.holds); n > 0 {
		parts = append(parts, format.Count(n, "grant")+", no overlap")
	}
	if gap := longestGap(r); gap.length() > 0 {
		parts = append(parts, fmt.Sprintf("longest time that the lock was free while somebody waited: %s",
			format.Duration(gap.length())))
	}
	if len(parts) == 0 {
		return r.Judgement.Sentence
	}
	return strings.Join(parts, "; ")
}

// survived says which faults hit what, and whether the lock was held then.
func survived(r *Run) string {
	var names []string
	hits := map[string][]*faultLife{}
	for i := range r.faults {
		f := &r.faults[i]
		if len(f.bites) == 0 {
			continue
		}
		if hits[f.name] == nil {
			names = append(names, f.name)
		}
		hits[f.name] = append(hits[f.name], f)
	}
	var parts []string
	for _, name := range names {
		parts = append(parts, survivedOne(r, name, hits[name]))
	}
	return strings.Join(parts, "; ")
}

func survivedOne(r *Run, name string, lives []*faultLife) string {
	held := 0
	hit := map[string]bool{}
	for _, f := range lives {
		if r.heldAt(f.inject) || r.heldAt(f.hit()) { // a client that is killed has ended when it is seen to be dead
			held++
		}
		for target := range strings.SplitSeq(f.target, "+") {
			hit[target] = true
		}
	}
	text := fmt.Sprintf("%s bit %s", quote(name), format.Count(len(lives), "time"))
	if len(lives) == 1 {
		text = fmt.Sprintf("%s bit once", quote(name))
	}
	if nodes := len(r.Manifest.Nodes); nodes > 1 && r.onNodes(hit) {
		text = fmt.Sprintf("%s hit %d of %d nodes", quote(name), len(hit), nodes)
	}
	switch {
	case held == len(lives):
		return text + " while the lock was held"
	case held == 0:
		return text + ", never while the lock was held"
	}
	return fmt.Sprintf("%s, %d of %d times while the lock was held", text, held, len(lives))
}

// onNodes says whether every target is a node, rather than a client, a link or a group.
func (r *Run) onNodes(targets map[string]bool) bool {
	for target := range targets {
		if !slices.ContainsFunc(r.Manifest.Nodes, func(n cluster.Node) bool { return n.Name == target }) {
			return false
		}
	}
	return true
}

// heldAt says whether anybody held any lock at t.
func (r *Run) heldAt(t time.Duration) bool {
	for i := range r.holds {
		if h := &r.holds[i]; h.From <= t && t <= h.to {
			return true
		}
	}
	return false
}

// facts are the numbers that every summary shows.
func facts(r *Run) []string {
	h := r.History
	all := []string{fmt.Sprintf("%s by %s in %s", format.Count(len(r.holds), "grant"),
		format.Count(len(r.perClient()), "client"), format.Duration(h.End))}
	for _, n := range h.Notices {
		if n.F == history.Crash {
			all = append(all, fmt.Sprintf("client %d ended by itself at %s: what it held is left to its lease",
				n.Process.Client(r.clients()), format.Instant(n.Time)))
		}
	}
	if n := ambiguous(h); n > 0 {
		all = append(all, fmt.Sprintf("%s of unknown outcome (no answer is not a refusal)", format.Count(n, "operation")))
	}
	if t := r.tally(); t.Injected+t.Missed > 0 {
		text := fmt.Sprintf("%d of %s bit", t.Bit, format.Count(t.Injected+t.Missed, "fault"))
		if t.Missed > 0 {
			text += fmt.Sprintf(", %d never came", t.Missed)
		}
		all = append(all, text)
	}
	if r.gaps != nil && r.gaps.wide() {
		all = append(all, fmt.Sprintf("around a fault a node was not looked at for %s: what was shorter may have been missed",
			format.Duration(r.gaps.Faults)))
	}
	if stale, refused := staleWrites(h); stale > 0 {
		all = append(all, fmt.Sprintf("%s with a token older than one already seen reached the guarded resource, "+
			"%d refused", format.Count(stale, "write"), refused))
	}
	if n := len(h.Problems); n > 0 {
		all = append(all, fmt.Sprintf("%s in the recorded history", format.Count(n, "problem")))
	}
	return all
}

// ambiguous counts operations whose outcome nobody knows.
func ambiguous(h *history.History) int {
	n := 0
	for i := range h.Spans {
		if h.Spans[i].Outcome == history.Info {
			n++
		}
	}
	return n
}

// staleWrites counts writes with a token older than one seen before, and how many of them were refused.
func staleWrites(h *history.History) (stale, refused int) {
	for i := range h.Touches {
		t := &h.Touches[i]
		if t.Token == 0 || t.Token >= t.MaxSeen {
			continue
		}
		stale++
		if !t.Accepted {
			refused++
		}
	}
	return stale, refused
}
