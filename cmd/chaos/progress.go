package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

// heartbeat is how often a log is told that the run is alive (a line each
// 100 ms floods CI logs: grafana/k6#1376).
const heartbeat = 10 * time.Second

// progress shows a run while it goes on: on a terminal one live block, in a
// log a line per phase and a heartbeat.
type progress struct {
	out   io.Writer
	width int // of the terminal; 0: a log

	mu     sync.Mutex
	phase  string
	now    time.Duration // by the run's clock, which is virtual on backend sim
	said   time.Duration // last line in a log
	lines  int           // of the block on the terminal
	events int           // at the last tick, for the rate
	ticked time.Duration
	rate   float64
}

func newProgress(s streams, sc scenarios.Scenario, seed uint64) *progress {
	p := &progress{out: s.err}
	if os.Getenv("CI") == "" && os.Getenv("TERM") != "dumb" {
		p.width = terminal(s.err)
	}
	fmt.Fprintf(p.out, "scenario %s: %s\n", sc.Name, harmless(sc.Summary))
	fmt.Fprintf(p.out, "lock %s on %s, %d clients, seed %d\n", harmless(sc.Lock), sc.Topology.Kind, clientsOf(sc), seed)
	return p
}

func clientsOf(sc scenarios.Scenario) int {
	params := sc.Workload.Defaults()
	return params.Clients
}

func (p *progress) begin(backend, why string) {
	fmt.Fprintf(p.out, "backend %s: %s\n", backend, why)
}

// see is told of the run by the runner.
func (p *progress) see(s runner.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.Passed
	p.now = now
	if past := now - p.ticked; past >= time.Second {
		p.rate = float64(s.Events-p.events) / past.Seconds()
		p.events, p.ticked = s.Events, now
	}
	if p.width > 0 {
		p.draw(s)
		return
	}
	if s.Phase != p.phase || now-p.said >= heartbeat {
		p.phase, p.said = s.Phase, now
		fmt.Fprintf(p.out, "%6.1fs  %s\n", now.Seconds(), p.line(s))
	}
}

func (p *progress) line(s runner.Status) string {
	words := map[string]string{
		"start": "starting servers and clients", "run": "clients are at work", "heal": "healing faults, clients finish",
		"judge": "judging the history",
	}
	text := words[s.Phase]
	if s.Events > 0 {
		text += fmt.Sprintf(": %d grants, %d events, %d unknown", s.Grants, s.Events, s.Unknown)
	}
	if s.Overlaps {
		text += ", two holders at once"
	}
	return text
}

// draw repaints the live block.
func (p *progress) draw(s runner.Status) {
	lines := []string{fmt.Sprintf("%6.1fs  %s", p.now.Seconds(), p.line(s))}
	if s.Phase == "run" {
		lines = append(lines, fmt.Sprintf("         %.1fs left, %.0f events/s", s.Left.Seconds(), p.rate))
	}
	if len(s.Holders) > 0 {
		lines = append(lines, "         held: "+holders(s.Holders))
	}
	if len(s.Faults) > 0 {
		lines = append(lines, "         broken: "+inOrder(s.Faults))
	}
	p.wipe()
	for _, line := range lines {
		if runes := []rune(line); len(runes) > p.width-1 {
			line = string(runes[:p.width-1])
		}
		fmt.Fprintln(p.out, line)
	}
	p.lines = len(lines)
}

// wipe removes the block from the terminal.
func (p *progress) wipe() {
	if p.lines > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\x1b[J", p.lines)
	}
	p.lines = 0
}

// end leaves the terminal to the result, if there is one.
func (p *progress) end(result bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	if p.width == 0 && result {
		fmt.Fprintf(p.out, "%6.1fs  writing the report\n", p.now.Seconds())
	}
}

// holders says who holds which key, at most three of them.
func holders(byKey map[string][]int) string {
	var parts []string
	for key, clients := range byKey { // order does not matter: sorted below
		part := fmt.Sprintf("%s by client %v", key, clients[0])
		for _, c := range clients[1:] {
			part += fmt.Sprintf(" AND client %d", c)
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	if len(parts) > 3 {
		parts = append(parts[:3], fmt.Sprintf("%d more", len(byKey)-3))
	}
	return strings.Join(parts, ", ")
}

func inOrder(byID map[int]string) string {
	var ids []int
	for id := range byID { // order does not matter: sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var parts []string
	for _, id := range ids {
		parts = append(parts, byID[id])
	}
	return strings.Join(parts, ", ")
}
