// Package reports shows what happened in a run to people and to machines: one
// HTML page, text for a terminal, JSON, JUnit XML, a job summary in Markdown,
// and plots. It is a view on a run directory alone. It judges only
// what was killed before package checker could, and needs no running server.
//
// Read [Run] first: a run directory with everything in it parsed. [Load] makes
// one, [Render] writes it in one of the formats of [Catalog], [WriteAll] writes
// the files that every run ends with. Where the data does not show something,
// the report says so and does not guess.
package reports

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Run is everything that a run directory tells. It is not changed after [Load]
// or [New], so several goroutines may render it at once. There is nothing to close.
type Run struct {
	Dir       *rundir.Dir // nil if the run never was on disk
	Manifest  rundir.Manifest
	History   *history.History
	Witness   []history.Sample // in the order of Time; empty if there was no witness
	Judgement checker.Judgement
	Judged    bool     // Judgement was there; false: the page says how to get one
	Missing   []string // what could not be read, as sentences; empty if nothing is missing

	holds   []hold          // in the order of grants
	faults  []faultLife     // in the order of injections
	missed  []history.Fault // planned, and never came
	notes   []history.Fault // observations that belong to no fault
	ownerOf map[string]int  // owner id → client
	seen    witness         // samples by node
	gaps    *gaps           // between them; nil if nobody watched
	cited   map[int]string  // raw lines of the events that the page cites, by index
	colour  map[int]int     // client → place in the palette
	story   Story           // computed once
}

// Load reads everything in a run directory. A run without a verdict is judged
// by what it had recorded. That, or a missing witness, is no error: Missing
// says so, and every format shows it. The error is
// about run.json or history.jsonl, without which there is nothing to show.
func Load(dir *rundir.Dir) (*Run, error) {
	m, err := dir.ReadManifest()
	if err != nil {
		return nil, err
	}
	h, err := history.ReadFile(dir.File(rundir.HistoryFile))
	if err != nil {
		return nil, fmt.Errorf("reading history of %s: %w", dir.Path, err)
	}
	if h.Clients == 0 {
		h.Clients = m.Clients
	}
	var missing []string
	samples, torn, err := history.ReadSamplesFile(dir.File(rundir.WitnessFile))
	for _, p := range torn {
		missing = append(missing, p.Text)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing = append(missing, "no "+rundir.WitnessFile+": what the servers had in memory is not known")
	case err != nil:
		missing = append(missing, "a part of "+rundir.WitnessFile+" could not be read: "+err.Error())
	}
	j, note := judgement(dir, m, h)
	if note != "" {
		missing = append(missing, note)
	}
	r := New(m, h, samples, j)
	r.Dir, r.Missing = dir, missing
	r.cited, err = rawLines(dir.File(rundir.HistoryFile), r.citedEvents())
	return r, err
}

// judgement is the verdict of a run, or, of one that was killed before it had
// any, what its history proves; the note says which.
func judgement(dir *rundir.Dir, m rundir.Manifest, h *history.History) (j checker.Judgement, note string) {
	j, err := dir.ReadVerdict()
	if err == nil {
		return j, ""
	}
	note = "the verdict could not be read (" + err.Error() + "): judged again for this report"
	if errors.Is(err, fs.ErrNotExist) {
		note = "no " + rundir.VerdictFile + ": the run ended before it was judged, or goes on still; " +
			"what it had recorded was judged for this report"
	}
	return m.Downgrade(checker.Judge(h, checker.Options{MayBeDown: m.MayBeDown()})), note
}

// New makes a Run of parts in memory: a simulation that wrote no files, or a test.
func New(m rundir.Manifest, h *history.History, samples []history.Sample, j checker.Judgement) *Run {
	r := &Run{Manifest: m, History: h, Witness: samples, Judgement: j, Judged: j.Verdict != ""}
	sort.SliceStable(r.Witness, func(i, k int) bool { return r.Witness[i].Time < r.Witness[k].Time })
	r.holds = findHolds(h, checker.Options{LockKind: j.LockKind}, r.clients())
	r.faults, r.missed, r.notes = findFaults(h)
	r.ownerOf = map[string]int{}
	for i := range h.Spans {
		s := &h.Spans[i]
		r.ownerOf[r.ownerName(s.Owner)] = s.Process.Client(r.clients())
	}
	r.seen = newWitness(r.Witness, m.Nodes)
	r.gaps = findGaps(&r.seen, r.faults)
	r.story = tell(r)
	r.colour = r.paint()
	return r
}

// clients is how many clients the run had; 0 if nothing tells.
func (r *Run) clients() int {
	if r.History.Clients > 0 {
		return r.History.Clients
	}
	return r.Manifest.Clients
}

// verdict is the judgement's, or a word that says that there is none.
func (r *Run) verdict() checker.Verdict {
	if !r.Judged {
		return "not judged"
	}
	return r.Judgement.Verdict
}

// title names the run for headings.
func (r *Run) title() string {
	if r.Manifest.Scenario == "" {
		return "history"
	}
	return r.Manifest.Scenario
}

// path is where the run lies, or empty.
func (r *Run) path(name string) string {
	if r.Dir == nil {
		return ""
	}
	return r.Dir.File(name)
}

// keyName is the name of a key by its number.
func (r *Run) keyName(key int32) string { return at(r.History.Keys, key) }

// ownerName is the id of an owner by its number.
func (r *Run) ownerName(owner int32) string { return at(r.History.Owners, owner) }

// at is names[i], or empty where a history has no name.
func at(names []string, i int32) string {
	if i < 0 || int(i) >= len(names) {
		return ""
	}
	return names[i]
}

// paint gives every client a colour: those of the worst violation first, so that
// the two that matter always have the two colours that differ most.
func (r *Run) paint() map[int]int {
	colour := map[int]int{}
	add := func(c int) {
		if _, ok := colour[c]; !ok && c >= 0 {
			colour[c] = len(colour)
		}
	}
	if v := r.worst(); v != nil {
		for _, c := range v.Clients {
			add(c)
		}
	}
	for i := range r.History.Spans {
		add(r.History.Spans[i].Process.Client(r.clients()))
	}
	return colour
}

// worst is the violation that the page is about; nil if there is none. Of those
// that are about as long as the longest it is the first: what came later follows from it.
func (r *Run) worst() *checker.Violation {
	var all []*checker.Violation
	top := 0
	for i := range r.Judgement.Results {
		res := &r.Judgement.Results[i]
		if res.Outcome != checker.Violated || res.Property == checker.Bite {
			continue
		}
		for k := range res.Violations {
			v := &res.Violations[k]
			switch rank := rankOf(res.Property, v); {
			case rank > top:
				top, all = rank, []*checker.Violation{v}
			case rank == top:
				all = append(all, v)
			}
		}
	}
	var longest time.Duration
	for _, v := range all {
		longest = max(longest, r.during(v).length())
	}
	var first *checker.Violation
	for _, v := range all {
		if r.during(v).length() >= longest/10*9 && (first == nil || v.Start < first.Start) {
			first = v
		}
	}
	return first
}

// rankOf sorts violations by what a reader must see first: two holders at once
// before what followed from it, a broken promise before an outlived lease.
func rankOf(p checker.Property, v *checker.Violation) int {
	rank := 1
	if overlaps(p) {
		rank += 2
	}
	if v.Class == checker.BrokenPromise {
		rank++
	}
	return rank
}
