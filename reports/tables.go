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
	"github.com/lockchaos/lockchaos/internal/stats"
)

type faultRow struct {
	Name, Target, Inject, Heal, Doc, Detail, EffectText string
	Effective                                           bool
}

type propertyRow struct {
	Name, Doc, Class, Shape, Outcome, Expected, Because, Summary, Counts string
	Total                                                                int
}

type violationRow struct {
	Property, Start, Length, Class, Text, Rule string
	Events                                     []int
	N                                          int // index in browseData.Found
	First                                      bool
}

type unknownRow struct {
	Client, Op, Requested, Reply string
	Event                        int
}

func (p *page) tables(r *Run) {
	p.faults(r)
	p.properties(r)
	p.violations(r)
	p.unknown(r)
	p.clients(r)
	p.Thresholds = r.Judgement.Thresholds
	p.Latencies = stats.Latencies(r.History)
}

func (p *page) faults(r *Run) {
	for i := range r.faults {
		if i == maxFaultRows {
			p.MoreFaults = fmt.Sprintf("%s in %s.", more(len(r.faults)-i, "fault"), rundir.HistoryFile)
			break
		}
		f := &r.faults[i]
		row := faultRow{Name: f.name, Target: targetName(f.target), Inject: format.Instant(f.inject),
			Heal:      strings.TrimPrefix(f.healing(), "healed at "),
			Effective: len(f.effects) > 0, EffectText: "✕ no", Detail: "no effect observed", Doc: f.detail}
		if row.Effective {
			row.EffectText = "✓ at " + format.Instant(f.effectTime())
			row.Detail = f.effects[0].Detail
			if len(f.effects) > 1 {
				row.EffectText += fmt.Sprintf(", %s", format.Count(len(f.effects), "time"))
			}
		}
		p.Faults = append(p.Faults, row)
	}
	p.missedFaults(r)
	for _, n := range r.notes {
		if len(p.Notes) == maxFaultRows {
			p.Notes = append(p.Notes, more(len(r.notes)-maxFaultRows, "observation"))
			break
		}
		p.Notes = append(p.Notes, format.Instant(n.Time)+" "+noteText(n))
	}
}

// missedFaults adds rows for faults that were planned but never injected.
func (p *page) missedFaults(r *Run) {
	for i, f := range r.missed {
		if i == maxFaultRows {
			p.MoreFaults = strings.TrimSpace(fmt.Sprintf("%s %s (never injected) in %s.", p.MoreFaults,
				more(len(r.missed)-i, "fault"), rundir.HistoryFile))
			return
		}
		p.Faults = append(p.Faults, faultRow{Name: f.Name, Target: targetName(f.Target), Inject: "–", Heal: "–",
			EffectText: "✕ never injected", Detail: f.Detail})
	}
}

func (p *page) properties(r *Run) {
	for _, res := range r.Judgement.Results {
		if isNotApplicable(r, &res) {
			p.NotApplicable = append(p.NotApplicable, field{string(res.Property), res.Summary})
			continue
		}
		row := propertyRow{Name: string(res.Property), Outcome: string(res.Outcome), Total: res.Total,
			Summary: res.Summary, Expected: r.Manifest.Expect[string(res.Property)],
			Because: r.Manifest.Because[string(res.Property)], Counts: countsText(res.Counts)}
		row.Class, row.Shape = outcomeStyle(res.Outcome)
		if spec, ok := checker.Find(res.Property); ok {
			row.Doc = "violated when " + spec.Doc
			if res.Property == checker.Exercised { // whose text is a whole sentence
				row.Doc = spec.Doc
			}
		}
		p.Properties = append(p.Properties, row)
	}
}

func countsText(counts map[string]int64) string {
	return strings.Join(format.Texts(slices.Sorted(maps.Keys(counts)), func(name string) string {
		return strings.ReplaceAll(name, "_", " ") + " " + format.Number(counts[name])
	}), " · ")
}

func (p *page) violations(r *Run) {
	worst := r.worst
	for res := range each(r.Judgement.Results) {
		if res.Total > len(res.Violations) && len(res.Violations) > 0 {
			p.ViolationNotes = append(p.ViolationNotes, fmt.Sprintf("%s: the worst %s of %s.",
				res.Property, format.Number(len(res.Violations)), format.Count(res.Total, "violation")))
		}
		for v := range each(res.Violations) {
			row := violationRow{Property: string(res.Property), Start: format.Instant(v.Start), Class: string(v.Class),
				Text: v.Text, Rule: v.Rule, Events: v.Events, N: len(p.Violations), First: v == worst}
			if w := r.during(v); w.length() > 0 {
				row.Length = format.Duration(w.length())
			}
			p.Violations = append(p.Violations, row)
		}
	}
}

func (p *page) unknown(r *Run) {
	rest := 0
	for s := range each(r.History.Spans) {
		if s.Outcome != history.Info {
			continue
		}
		if len(p.Unknown) == maxUnknownRows {
			rest++
			continue
		}
		reply := "no reply"
		if s.Ended >= 0 {
			reply = fmt.Sprintf("unknown, event %d", s.Ended)
		}
		p.Unknown = append(p.Unknown, unknownRow{r.who(s.Process),
			opName(s.Op) + " " + r.keyName(s.Key), format.Instant(s.Call), reply, int(s.Invoked)})
	}
	if rest > 0 {
		p.MoreUnknown = fmt.Sprintf("%s in %s.", more(rest, "operation"), rundir.HistoryFile)
	}
}

func (p *page) clients(r *Run) {
	p.Clients = r.perClient()
	if len(p.Clients) > maxClientRows {
		p.MoreClients = more(len(p.Clients)-maxClientRows, "client") + "."
		p.Clients = p.Clients[:maxClientRows]
	}
}

func (p *page) configuration(r *Run) {
	if r.alone() {
		return
	}
	m := &r.Manifest
	all := []field{{"Run", m.ID}, {"Backend", m.Backend}, {"Reason for the backend", m.Why},
		{"Message delivery", m.Delivery},
		{"Source of the claim", m.Source}, {"Requested lease", leaseText(m)}, {"Keys", strings.Join(m.Keys, ", ")}}
	for _, n := range m.Nodes {
		all = append(all, field{n.Name, n.Addr})
	}
	for _, k := range slices.Sorted(maps.Keys(m.Topology.Options)) {
		all = append(all, field{optionOwner(m.Topology) + " " + k, m.Topology.Options[k]})
	}
	for _, ph := range m.Phases {
		all = append(all, field{"Phase " + ph.Name, format.Duration(ph.End - ph.Start)})
	}
	for _, k := range slices.Sorted(maps.Keys(m.Versions)) {
		all = append(all, field{k, m.Versions[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(m.Machine)) {
		all = append(all, field{k, m.Machine[k]})
	}
	p.Config, p.Plan, p.YAML = nonEmpty(all), m.Plan, m.YAML
	p.SeedNote = "The seed determines the workload and the fault plan, but on real servers not the timing: a repeated " +
		"run may differ in detail."
	if m.Deterministic {
		p.SeedNote = "In a simulation the seed determines everything: a repeated run has the same history, byte by byte."
	}
}

// leaseText is the lease that the workload requests. Only a lock that states so renews by itself what has none.
func leaseText(m *rundir.Manifest) string {
	switch {
	case m.Lease > 0:
		return format.Duration(m.Lease)
	case m.Judging().RenewsItself:
		return "none: the lock renews automatically"
	}
	return "none"
}

// optionOwner is whose options those of a topology are.
func optionOwner(t cluster.Topology) string {
	switch t.Kind {
	case cluster.ZooKeeper:
		return "ZooKeeper"
	case cluster.Etcd:
		return "etcd"
	}
	return "redis"
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
		return "quorum of " + format.Count(len(r.Manifest.Nodes), "master")
	case cluster.Sentinel:
		return fmt.Sprintf("sentinel: 1 master, %s, %s", format.Count(max(len(r.Manifest.Nodes)-1, 0), "replica"),
			format.Count(t.Sentinels, "Sentinel"))
	}
	return t.Kind
}
