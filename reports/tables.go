package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

type faultRow struct {
	Name, Target, Inject, Heal, Doc, Detail, BitText string
	Bit                                              bool
}

type propertyRow struct {
	Name, Doc, Class, Shape, Outcome, Expected, Summary, Counts string
	Total                                                       int
}

type violationRow struct {
	Property, Start, Length, Class, Text, Rule string
	Events                                     []eventLink
	First                                      bool
}

type eventLink struct {
	Index int
	Link  bool
}

type ambiguousRow struct {
	Client, Op, Asked, Answered string
	Event                       int
}

type latencyCells struct {
	Op                 string
	N                  int
	P50, P90, P99, Max string
}

type clientCells struct {
	clientRow
	Name, Colour, Held, Longest string
}

func (p *page) tables(r *Run) {
	p.faults(r)
	p.properties(r)
	p.violations(r)
	p.ambiguous(r)
	p.clients(r)
	for _, l := range r.latencies() {
		p.Latencies = append(p.Latencies, latencyCells{l.Op, l.N, format.Duration(l.P50), format.Duration(l.P90), format.Duration(l.P99), format.Duration(l.Max)})
	}
}

func (p *page) faults(r *Run) {
	for i := range r.faults {
		if i == maxFaultRows {
			p.MoreFaults = fmt.Sprintf("%d more faults are in %s.", len(r.faults)-i, rundir.HistoryFile)
			break
		}
		f := &r.faults[i]
		row := faultRow{Name: f.name, Target: targetName(f.target), Inject: format.Instant(f.inject), Heal: "not healed",
			Bit: len(f.bites) > 0, BitText: "✕ no", Detail: "no effect was observed", Doc: f.detail}
		if f.heal != history.Infinity {
			row.Heal = format.Instant(f.heal)
		}
		if row.Bit {
			row.BitText = "✓ at " + format.Instant(f.hit())
			row.Detail = f.bites[0].Detail
			if len(f.bites) > 1 {
				row.BitText += fmt.Sprintf(", %d times", len(f.bites))
			}
		}
		p.Faults = append(p.Faults, row)
	}
	p.missedFaults(r)
	for _, n := range r.notes {
		if len(p.Notes) == maxFaultRows {
			p.Notes = append(p.Notes, fmt.Sprintf("%d more", len(r.notes)-maxFaultRows))
			break
		}
		p.Notes = append(p.Notes, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", format.Instant(n.Time), n.Name,
			targetName(n.Target), n.Detail)))
	}
}

// missedFaults are rows for what was planned and never came: it tested nothing,
// which a reader of the table must not have to find out.
func (p *page) missedFaults(r *Run) {
	for i, f := range r.missed {
		if i == maxFaultRows {
			p.MoreFaults = strings.TrimSpace(fmt.Sprintf("%s %d more that never came are in %s.", p.MoreFaults,
				len(r.missed)-i, rundir.HistoryFile))
			return
		}
		p.Faults = append(p.Faults, faultRow{Name: f.Name, Target: targetName(f.Target), Inject: "–", Heal: "–",
			BitText: "✕ never came", Detail: f.Detail})
	}
}

// outcomeLook is how an outcome is shown: a class, and a shape that does without colour.
func outcomeLook(o checker.Outcome) (class, shape string) {
	switch o {
	case checker.Holds:
		return "good", "✓"
	case checker.Violated:
		return "bad", "✕"
	case checker.Undecided:
		return "maybe", "?"
	}
	return "quiet", "–"
}

func (p *page) properties(r *Run) {
	for _, res := range r.Judgement.Results {
		if silent(r, &res) {
			p.NotApplicable = append(p.NotApplicable, pairOfWords{string(res.Property), res.Summary})
			continue
		}
		row := propertyRow{Name: string(res.Property), Outcome: string(res.Outcome), Total: res.Total,
			Summary: res.Summary, Expected: r.Manifest.Expect[string(res.Property)], Counts: countsText(res.Counts)}
		row.Class, row.Shape = outcomeLook(res.Outcome)
		if spec, ok := checker.Find(res.Property); ok {
			row.Doc = "violated when " + spec.Doc
			if res.Property == checker.Bite { // its sentence is whole
				row.Doc = spec.Doc
			}
		}
		p.Properties = append(p.Properties, row)
	}
}

// silent says whether a property had nothing to say of this run, and nobody
// expected that it had: one line names all of them.
func silent(r *Run, res *checker.Result) bool {
	expected := r.Manifest.Expect[string(res.Property)]
	return res.Outcome == checker.NotApplicable && (expected == "" || expected == string(checker.NotApplicable))
}

func countsText(counts map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, " · ")
}

func (p *page) violations(r *Run) {
	worst := r.worst()
	for i := range r.Judgement.Results {
		res := &r.Judgement.Results[i]
		if res.Total > len(res.Violations) && len(res.Violations) > 0 {
			p.ViolationNotes = append(p.ViolationNotes, fmt.Sprintf("%s: the %s kept of %d in all.",
				res.Property, format.Count(len(res.Violations), "violation"), res.Total))
		}
		for k := range res.Violations {
			v := &res.Violations[k]
			row := violationRow{Property: string(res.Property), Start: format.Instant(v.Start), Class: string(v.Class),
				Text: v.Text, Rule: v.Rule, First: v == worst}
			if w := r.during(v); w.length() > 0 {
				row.Length = format.Duration(w.length())
			}
			for _, e := range v.Events {
				_, link := r.cited[e]
				row.Events = append(row.Events, eventLink{e, link})
			}
			p.Violations = append(p.Violations, row)
		}
	}
}

func (p *page) ambiguous(r *Run) {
	more := 0
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		if s.Outcome != history.Info {
			continue
		}
		if len(p.Ambiguous) == maxAmbiguousRows {
			more++
			continue
		}
		answered := "no answer"
		if s.Ended >= 0 {
			answered = fmt.Sprintf("unknown, event %d", s.Ended)
		}
		p.Ambiguous = append(p.Ambiguous, ambiguousRow{clientName(s.Process.Client(r.clients())),
			opName(s.Op) + " " + r.keyName(s.Key), format.Instant(s.Call), answered, int(s.Invoked)})
	}
	if more > 0 {
		p.MoreAmbiguous = fmt.Sprintf("The first %d are shown, %d more are in history.jsonl.", maxAmbiguousRows, more)
	}
}

func (p *page) clients(r *Run) {
	all := r.perClient()
	if len(all) > maxClientRows {
		p.MoreClients = fmt.Sprintf("%d more clients are not shown.", len(all)-maxClientRows)
		all = all[:maxClientRows]
	}
	for _, c := range all {
		colour, ok := r.colour[c.Client]
		if !ok {
			colour = c.Client
		}
		p.Clients = append(p.Clients, clientCells{clientRow: c, Name: clientName(c.Client), Colour: palette(colour),
			Held: format.Duration(c.Held), Longest: format.Duration(c.Longest)})
	}
}

func (p *page) configuration(r *Run) {
	m := &r.Manifest
	all := []pairOfWords{{"Run", m.ID}, {"Backend", m.Backend}, {"Why this backend", m.Why},
		{"Messages arrive", m.Delivery},
		{"Source of the claim", m.Source}, {"Lease asked", leaseText(m.Lease)}, {"Keys", strings.Join(m.Keys, ", ")}}
	for _, n := range m.Nodes {
		all = append(all, pairOfWords{n.Name, n.Addr})
	}
	for _, k := range slices.Sorted(maps.Keys(m.Topology.Options)) {
		all = append(all, pairOfWords{"redis: " + k, m.Topology.Options[k]})
	}
	for _, ph := range m.Phases {
		all = append(all, pairOfWords{"Phase " + ph.Name, format.Duration(ph.End - ph.Start)})
	}
	for _, k := range slices.Sorted(maps.Keys(m.Versions)) {
		all = append(all, pairOfWords{k, m.Versions[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(m.Machine)) {
		all = append(all, pairOfWords{k, m.Machine[k]})
	}
	p.Config, p.Plan, p.YAML = kept(all), m.Plan, m.YAML
	p.SeedNote = "The seed fixes the workload and the plan of faults. On real servers it cannot fix the timing of the " +
		"kernel, so a repetition may differ in detail."
	if m.Deterministic {
		p.SeedNote = "The seed fixes everything in a simulation: a repetition has the same history, byte by byte."
	}
}

func leaseText(lease time.Duration) string {
	if lease == 0 {
		return "none: the lock renews by itself"
	}
	return format.Duration(lease)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func topologyText(r *Run) string {
	t := r.Manifest.Topology
	switch t.Kind {
	case cluster.Quorum:
		return fmt.Sprintf("quorum of %d masters", len(r.Manifest.Nodes))
	case cluster.Sentinel:
		return fmt.Sprintf("sentinel: 1 master, %s, %s", format.Count(max(len(r.Manifest.Nodes)-1, 0), "replica"),
			format.Count(t.Sentinels, "Sentinel"))
	}
	return t.Kind
}
