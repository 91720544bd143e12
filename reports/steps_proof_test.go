package reports

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/scenarios"
)

var (
	instantText  = regexp.MustCompile(`\b\d+\.\d{3}(?:\d{3})? m?s\b`)
	durationText = regexp.MustCompile(`\b\d+(\.\d+)? (ms|µs)\b|\b\d+\.\d{1,2} s\b`)
)

// checkSteps checks that each step has the time of the event that it cites, that an instant in its text is recorded in
// the run directory, and that a length of time lies between two such instants.
func checkSteps(t *testing.T, r *Run) {
	t.Helper()
	d := readRaw(t, r)
	known := d.instants(r)
	var story []time.Duration // the instants between which a length of time in a step may be measured
	for _, s := range r.Story.Steps {
		story = append(story, s.Time)
	}
	if v := r.Worst; v != nil {
		story = append(story, v.Start, v.End)
	}
	for i := range r.Holds {
		story = append(story, r.Holds[i].ValidUntil())
	}
	for i := range r.Faults {
		story = append(story, r.Faults[i].EffectTime())
	}
	for _, s := range r.Story.Steps {
		if s.Event >= 0 && d.at(evidence.Point{Event: s.Event}) != s.Time {
			t.Errorf("step %d is at %v, and its event %d at %v", s.N, s.Time, s.Event, d.at(evidence.Point{Event: s.Event}))
		}
		if s.Event < 0 && !known[format.Instant(s.Time)] {
			t.Errorf("step %d at %v, without an event: no sample and no validity ends then", s.N, s.Time)
		}
		rest := regexp.MustCompile("`[^`]*`").ReplaceAllString(s.Text, "")
		if s.Event >= 0 { // the words of a fault are quoted from it
			if f := d.value(evidence.Point{Event: s.Event}).Fault; f != nil && f.Detail != "" {
				rest = regexp.MustCompile(regexp.QuoteMeta(f.Detail)).ReplaceAllString(rest, "")
			}
		}
		for _, text := range instantText.FindAllString(rest, -1) {
			if !known[text] {
				t.Errorf("step %d: nothing was recorded at %s: %s", s.N, text, s.Text)
			}
		}
		for _, text := range durationText.FindAllString(instantText.ReplaceAllString(rest, ""), -1) {
			if !between(text, story) {
				t.Errorf("step %d: no two instants are %s apart: %s", s.N, text, s.Text)
			}
		}
	}
}

// checkNamed checks that each thing in the headline has a step in the story: an operation, a notice or a write one of
// its events, the end of a validity a step at that instant.
func checkNamed(t *testing.T, r *Run) {
	t.Helper()
	for _, p := range r.Story.Proofs {
		if p.Kind != evidence.ProofInstant || p.From[0].Event < 0 {
			continue
		}
		at := p.From[0]
		same := r.SameOperation(at.Event)
		found := slices.ContainsFunc(r.Story.Steps, func(s evidence.Step) bool {
			return at.Until && s.Time == at.Time || !at.Until && slices.Contains(same, s.Event)
		})
		if len(same) > 0 && !found {
			t.Errorf("the headline has %s, of event %d, and no step is about it: %s", p.Text, at.Event, r.Story.Sentence)
		}
	}
}

// between reports whether two of these instants are that far apart.
func between(text string, all []time.Duration) bool {
	return slices.ContainsFunc(all, func(a time.Duration) bool {
		return slices.ContainsFunc(all, func(b time.Duration) bool { return a <= b && format.Duration(b-a) == text })
	})
}

// instants are all that the run directory states: times of events and samples, and ends of leases and validities.
func (d raw) instants(r *Run) map[string]bool {
	known := map[string]bool{format.Instant(r.History.End): true}
	for i, e := range d.events {
		known[format.Instant(e.Time)] = true
		for _, until := range []bool{false, true} {
			known[format.Instant(d.at(evidence.Point{Event: i, Until: until}))] = true
		}
	}
	for _, s := range d.samples {
		known[format.Instant(s.Time)] = true
	}
	return known
}

// TestSafeSentencesOnSim: claims about waits and grants in the sentence of a safe run follow from its history, and so
// do its steps.
func TestSafeSentencesOnSim(t *testing.T) {
	race.SkipLong(t, "it runs every safe scenario in simulation")
	checked := 0
	for _, name := range scenarios.Names() {
		s, err := scenarios.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Expect.Is(checker.Safe) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := runOn(t, "sim", name)
			checkSteps(t, r)
			d := readRaw(t, r)
			wait := regexp.MustCompile(`waited for at most (.*) while no client`).FindStringSubmatch(r.Story.Sentence)
			if wait == nil {
				return
			}
			checked++
			free := evidence.LongestFree(r)
			if !d.happens(free.From) || !d.happens(free.Until) || format.Duration(free.Length()) != wait[1] {
				t.Errorf("no events at %v and %v, or they are not %s apart", free.From, free.Until, wait[1])
			}
			for _, e := range d.events { // nobody was granted that key alone in between
				if e.Type == history.OK && e.F == history.Acquire && e.Time > free.From && e.Time < free.Until &&
					len(r.Manifest.Keys) == 1 {
					t.Errorf("event %d, a grant at %v, is between %v and %v", e.Index, e.Time, free.From, free.Until)
				}
			}
		})
	}
	if checked < 20 {
		t.Errorf("%d sentences about waits, want at least 20", checked)
	}
}

// happens reports whether an event was recorded at t.
func (d raw) happens(t time.Duration) bool {
	for _, e := range d.events { // in any order
		if e.Time == t || e.F == history.Lost && d.at(evidence.Point{Event: int(e.Index)}) == t {
			return true
		}
	}
	return false
}

// TestHistoryAloneKnowsNoNode: of a history without a run directory neither nodes nor faults are known, and the
// sentence does not speak of them.
func TestHistoryAloneKnowsNoNode(t *testing.T) {
	s := failoverRun("orders")
	events := slices.DeleteFunc(slices.Clone(s.events), func(e history.Event) bool { return e.Process == history.Nemesis })
	for i := range events {
		events[i].Index = int64(i)
	}
	h, err := history.Build(events)
	if err != nil {
		t.Fatal(err)
	}
	r, err := FromHistory("history.edn", h, checker.Judge(h, checker.Options{}),
		nil, func(map[int]bool) (map[int]string, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	want := "Client 3 and client 1 both held `orders` for 1.83 s: client 3 was granted the lock at 1.420 s, " +
		"client 1 was granted it at 3.390 s, 7.98 s before the validity of client 3 ended"
	if r.Story.Sentence != want {
		t.Errorf("%q, want %q", r.Story.Sentence, want)
	}
}
