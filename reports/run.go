// Package reports renders runs. Its Go API is not a promise: use the command line.
//
// It renders a run directory as an HTML page, text for a terminal, JSON, JUnit
// XML, a job summary in Markdown, and plots. It needs no server and starts
// nothing, and it judges only runs that were killed before their verdict.
//
// Read [Run] first: a run directory, parsed. [Load] reads one, [Render] writes it
// in one of the formats of [Catalog], [WriteAll] writes the files of a run
// directory. A report claims only what the data shows.
package reports

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
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
	Missing   []string // what could not be read, as sentences
	Rejudged  string   // why the judgement is not that of verdict.json; "": it is. Missing has it as well

	file    string          // of a history without a run directory; empty: a run
	holds   []hold          // in order of grants
	faults  []injection     // in order of injections
	missed  []history.Fault // planned, but never injected
	notes   []history.Fault // observations that belong to no fault
	ownerOf map[string]int  // owner id → client
	holdOf  map[ownerAt]int // index of the last hold of an owner; -1: none
	// sessionOf is the client of a session, where the servers know no owner.
	sessionOf map[string]int
	// keptAfterCrash is until when a node had the key of a client that crashed.
	keptAfterCrash map[abandonedAt]time.Duration
	unanswered     []*history.Span // acquires and tries of unknown outcome, in order of their requests
	witness        witness         // samples by node
	sampling       *samplingGaps   // nil if nodes were not sampled
	cited          map[int]string  // lines of the events that the page cites, by index
	color          map[int]int     // client → index in the palette
	story          story
	worst          *checker.Violation // that the story explains; nil if there is none
}

// open reads a run directory. It judges a run without a verdict. A missing
// verdict or missing samples are no error: Missing says so, and every format
// shows it. The error is about run.json or history.jsonl, without which there is
// nothing to show.
func open(dir *rundir.Dir) (*Run, error) {
	m, err := dir.ReadManifest()
	if err != nil {
		return nil, err
	}
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
	if !m.Foreign {
		h.Samples = rundir.SamplesUntil(samples, h.End)
	}
	j, note := judgement(dir, m, h)
	if note != "" {
		missing = append(missing, note)
	}
	r := newRun(m, h, samples, j)
	r.Dir, r.Missing, r.Rejudged = dir, missing, note
	return r, nil
}

// judgement is the verdict of a run or, without one, that of its history; the
// note says so.
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

// newRun makes a Run from its parts.
func newRun(m rundir.Manifest, h *history.History, samples []history.Sample, j checker.Judgement) *Run {
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
	r.holds = findHolds(h, j.HoldOptions())
	r.faults, r.missed, r.notes = injectionsOf(h)
	r.findResumed()
	r.indexOwners()
	r.indexSessions()
	r.witness = newWitness(r.Samples, m.Nodes)
	r.indexAbandoned()
	r.unanswered = allOf(h.Spans, func(s *history.Span) bool { return s.Outcome == history.Info && taking(s) })
	r.sampling = measureGaps(&r.witness, r.faults)
	return r
}

// verdict is that of the judgement, or "not judged".
func (r *Run) verdict() checker.Verdict {
	if !r.Judged {
		return "not judged"
	}
	return r.Judgement.Verdict
}

// title is the name of the run in headings.
func (r *Run) title() string {
	if r.Manifest.Scenario == "" {
		return cmp.Or(r.file, "history")
	}
	return r.Manifest.Scenario
}

// path is the path of a file of the run; empty if the run is not on disk.
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

// at is names[i], or "" out of range.
func at(names []string, i int32) string {
	if i < 0 || int(i) >= len(names) {
		return ""
	}
	return names[i]
}
