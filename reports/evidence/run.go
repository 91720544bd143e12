// Package evidence reads a run: its holds, its faults, the samples of its servers, and sentences in which each number
// names the event or the sample that it is from. Package cause explains violations with it, package story describes
// the run, and the other packages of reports draw and write it.
//
// Read [Run] first, then [Fault], [Hold] and [Say].
package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Run is a run directory, parsed. It does not change after [Load], so several
// goroutines may render it. There is nothing to close.
type Run struct {
	Dir       *rundir.Dir // nil if the run was never on disk
	Manifest  rundir.Manifest
	History   *history.History
	Samples   []history.Sample // of server state, in order of time
	Judgement checker.Judgement
	Judged    bool     // whether there is a Judgement
	Missing   []string // the unreadable parts, as sentences
	Rejudged  string   // why the judgement differs from verdict.json; "": it does not. Missing has it as well

	File    string           // of a history without a run directory; empty: a run
	Holds   []Hold           // in order of grants
	Faults  []Fault          // in order of injections
	Missed  []history.Fault  // planned, but never injected
	Notes   []history.Fault  // observations that belong to no fault
	ownerOf map[string]int   // owner id → client
	holdOf  map[ownerKey]int // index of the last hold of an owner; -1: none
	holdBy  map[int32]int    // index of the hold that an acquire began
	// sessionOf is the client of a session, where the servers know no owner.
	sessionOf  map[string]int
	learned    map[int32]time.Duration // when an outcome was known to be unknown, by the event
	Unanswered []*history.Span         // acquires and tries of unknown outcome, in order of their requests
	Witness    witness                 // samples by node
	Kept       *kept.Values            // the values of keys at masters, and their owners
	Sampling   *SamplingGaps           // nil if nodes were not sampled
	Cited      map[int]string          // lines of the events that the page cites, by index
	Color      map[int]int             // client → index in the palette
	Story      Story
	Worst      *checker.Violation // that the story explains; nil if there is none
}

// Open reads a run directory. It judges a run without a verdict. A missing
// verdict or missing samples are no error: Missing says so, and every format
// shows it. The error is about run.json or history.jsonl, without which there is
// nothing to show.
func Open(dir *rundir.Dir) (*Run, error) {
	m, err := dir.ReadManifest()
	if err != nil {
		return nil, err
	}
	return open(dir, m, nil)
}

// OpenAs is [Open] with the manifest and the judgement from memory.
func OpenAs(dir *rundir.Dir, m rundir.Manifest, j checker.Judgement) (*Run, error) {
	return open(dir, m, &j)
}

// open is [Open] with a judgement that may be known.
func open(dir *rundir.Dir, m rundir.Manifest, known *checker.Judgement) (*Run, error) {
	h, err := history.ReadFile(dir.File(rundir.HistoryFile))
	if err != nil {
		return nil, fmt.Errorf("reading history of %s: %w", dir.Path, err)
	}
	var missing []string
	samples, torn, err := history.ReadSamples(dir.File(rundir.WitnessFile))
	for _, p := range torn {
		missing = append(missing, p.Text)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing = append(missing, "no "+rundir.WitnessFile+": the state of the servers was not sampled")
	case err != nil:
		missing = append(missing, "part of "+rundir.WitnessFile+" could not be read: "+err.Error())
	}
	h.Samples = rundir.SamplesUntil(samples, h.End)
	var j checker.Judgement
	var note string
	if known != nil {
		j = *known
	} else if j, note = judgement(dir, m, h); note != "" {
		missing = append(missing, note)
	}
	r := New(m, h, samples, j)
	r.Dir, r.Missing, r.Rejudged = dir, missing, note
	return r, nil
}

// judgement is the verdict of a run or, without one, its history's; the note says so.
func judgement(dir *rundir.Dir, m rundir.Manifest, h *history.History) (j checker.Judgement, note string) {
	j, err := dir.ReadVerdict()
	if err == nil {
		changed, err := dir.ChangedSinceVerdict()
		if err == nil && changed == "" {
			return j, ""
		}
		note = changed + " has changed since it was judged; the history was judged again for this report"
		if err != nil {
			note = "whether the verdict is about this history is unknown (" + err.Error() +
				"); it was judged again for this report"
		}
		return m.Downgrade(checker.Judge(h, m.Judging())), note
	}
	note = "the verdict could not be read (" + err.Error() + "); the history was judged for this report"
	if errors.Is(err, fs.ErrNotExist) {
		note = "no " + rundir.VerdictFile + ": the run ended before it was judged, or is still running; " +
			"its history was judged for this report"
	}
	return m.Downgrade(checker.Judge(h, m.Judging())), note
}

// New makes a Run from its parts.
func New(m rundir.Manifest, h *history.History, samples []history.Sample, j checker.Judgement) *Run {
	if h.Clients == 0 {
		h.Clients = m.Clients
	}
	r := &Run{Manifest: m, History: h, Samples: samples, Judgement: j, Judged: j.Verdict != ""}
	return r.prepare()
}

// prepare finds holds, faults, the cause of the verdict and the story.
func (r *Run) prepare() *Run {
	h, m, j := r.History, &r.Manifest, &r.Judgement
	sort.SliceStable(r.Samples, func(i, k int) bool { return r.Samples[i].Time < r.Samples[k].Time })
	r.Holds = findHolds(h, j.HoldOptions())
	r.Faults, r.Missed, r.Notes = injectionsOf(h)
	r.findResumed()
	r.indexOwners()
	r.indexSessions()
	r.Witness = newWitness(r.Samples, m.Nodes)
	r.Kept = kept.Find(h, r.Samples)
	r.findEndless()
	r.learned = map[int32]time.Duration{}
	for u := range Each(h.Unknown) {
		r.learned[h.Spans[u.Span].Ended] = u.Time
	}
	r.Unanswered = AllOf(h.Spans, func(s *history.Span) bool { return s.Outcome == history.Info && Taking(s) })
	if r.Unsampled() == "" {
		r.Sampling = measureGaps(&r.Witness, r.Faults)
	}
	return r
}

// Verdict is the verdict of the judgement, or "not judged".
func (r *Run) Verdict() checker.Verdict {
	if !r.Judged {
		return "not judged"
	}
	return r.Judgement.Verdict
}

// Title is the name of the run in headings.
func (r *Run) Title() string {
	if r.Manifest.Scenario == "" {
		return cmp.Or(r.File, "history")
	}
	return r.Manifest.Scenario
}

// Path is the path of a file of the run; empty if the run is not on disk.
func (r *Run) Path(name string) string {
	if r.Dir == nil {
		return ""
	}
	return r.Dir.File(name)
}

// KeyName is the name of a key by its number.
func (r *Run) KeyName(key int32) string { return At(r.History.Keys, key) }

// OwnerName is the id of an owner by its number.
func (r *Run) OwnerName(owner int32) string { return At(r.History.Owners, owner) }

// At is names[i], or "" out of range.
func At(names []string, i int32) string {
	if i < 0 || int(i) >= len(names) {
		return ""
	}
	return names[i]
}
