package console

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Progress shows a run in progress: a block that is redrawn on a terminal, a line for each phase and every ten seconds
// in a log. Its methods may be called from several goroutines.
type Progress struct {
	out   io.Writer
	width int // of the terminal; 0: a log

	mu     sync.Mutex
	phase  string
	now    time.Duration // on the run's clock, which is virtual on backend sim
	logged time.Duration // when the last line of a log was written
	lines  int           // of the block on the terminal
	events int           // at ticked, for the rate
	ticked time.Duration
	rate   float64
}

// ShowRun prints the run that is about to begin on out, and then its progress.
func ShowRun(out io.Writer, s scenarios.Scenario, seed uint64) *Progress {
	clients := format.Count(s.Workload.Defaults().Clients, "client")
	fmt.Fprint(out, format.Printable(fmt.Sprintf("scenario %s: %s\nlock %s on topology %s, %s, seed %d\n", s.Name,
		format.Line(s.Summary), s.LockText(), s.Topology.Kind, clients, seed)))
	return &Progress{out: out, width: liveWidth(out)}
}

// Update is called by the runner, see runner.Options.Watch.
func (p *Progress) Update(s runner.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = s.Elapsed
	if past := p.now - p.ticked; past >= time.Second {
		p.rate = float64(s.Events-p.events) / past.Seconds()
		p.events, p.ticked = s.Events, p.now
	}
	if p.width > 0 {
		p.draw(s)
		return
	}
	if s.Phase != p.phase || p.now-p.logged >= logEvery {
		p.phase, p.logged = s.Phase, p.now
		fmt.Fprintf(p.out, "%s  %s\n", format.Elapsed(p.now), format.Line(p.line(s)))
	}
}

func (p *Progress) line(s runner.Status) string {
	phases := map[string]string{
		"start": "starting servers and clients",
		"run":   "running the workload",
		"heal":  "healing faults, waiting for clients to finish",
		"judge": "judging the history",
	}
	text := phases[s.Phase]
	if s.Events > 0 {
		text += fmt.Sprintf(": %s, %s, %s of unknown outcome", format.Count(s.Grants, "grant"),
			format.Count(s.Events, "event"), format.Number(s.Unknown))
	}
	if s.Overlaps {
		text += ", TWO HOLDERS AT ONCE"
	}
	return text
}

// draw redraws the block.
func (p *Progress) draw(s runner.Status) {
	lines := []string{format.Elapsed(p.now) + "  " + p.line(s)}
	if s.Phase == "run" {
		lines = append(lines, fmt.Sprintf("         %s left, %s/s", format.Duration(s.Remaining.Round(100*time.Millisecond)),
			format.Count(int(p.rate), "event")))
	}
	if len(s.Holders) > 0 {
		lines = append(lines, "         holders: "+holdersText(s.Holders))
	}
	if len(s.Faults) > 0 {
		lines = append(lines, "         faults: "+inOrder(s.Faults))
	}
	p.erase()
	for _, line := range lines {
		fmt.Fprintln(p.out, fit(format.Line(line), p.width))
	}
	p.lines = len(lines)
}

// erase removes the block from the terminal.
func (p *Progress) erase() {
	if p.lines > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.lines)
	}
	p.lines = 0
}

// End erases the block; written reports whether a report follows.
func (p *Progress) End(written bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	if p.width == 0 && written {
		fmt.Fprintf(p.out, "%s  writing the report\n", format.Elapsed(p.now))
	}
}

// holdersText lists who holds which key, for at most three keys.
func holdersText(byKey map[string][]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		part := fmt.Sprintf("%s: client %d", key, byKey[key][0])
		for _, c := range byKey[key][1:] {
			part += fmt.Sprintf(" AND client %d", c)
		}
		parts = append(parts, part)
	}
	if len(parts) > 3 {
		parts = append(parts[:3], format.Number(len(byKey)-3)+" more")
	}
	return strings.Join(parts, ", ")
}

func inOrder(byID map[int]string) string {
	return strings.Join(format.Texts(slices.Sorted(maps.Keys(byID)), func(id int) string { return byID[id] }), ", ")
}
