package page

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
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
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
	N                                          int // index in timeline.Columns.Found
	First                                      bool
}

type unknownRow struct {
	Client, Op, Requested, Reply string
	Event                        int
}

func (p *view) tables(r *evidence.Run) {
	p.faults(r)
	p.properties(r)
	p.violations(r)
	p.unknown(r)
	p.clients(r)
	p.Thresholds = r.Judgement.Thresholds
	p.Latencies = stats.Latencies(r.History)
}

func (p *view) faults(r *evidence.Run) {
	for i := range r.Faults {
		if i == maxFaultRows {
			p.MoreFaults = fmt.Sprintf("%s in %s.", timeline.More(len(r.Faults)-i, "fault"), rundir.HistoryFile)
			break
		}
		f := &r.Faults[i]
		row := faultRow{Name: f.Name, Target: evidence.TargetName(f.Target), Inject: format.Instant(f.Inject),
			Heal:      strings.TrimPrefix(f.Healing(), "healed at "),
			Effective: len(f.Effects) > 0, EffectText: "✕ no", Detail: "no effect observed", Doc: f.Detail}
		if row.Effective {
			row.EffectText = "✓ at " + format.Instant(f.EffectTime())
			row.Detail = f.Effects[0].Detail
			if len(f.Effects) > 1 {
				row.EffectText += fmt.Sprintf(", %s", format.Count(len(f.Effects), "time"))
			}
		}
		p.Faults = append(p.Faults, row)
	}
	p.missedFaults(r)
	for _, n := range r.Notes {
		if len(p.Notes) == maxFaultRows {
			p.Notes = append(p.Notes, timeline.More(len(r.Notes)-maxFaultRows, "observation"))
			break
		}
		p.Notes = append(p.Notes, format.Instant(n.Time)+" "+evidence.NoteText(n))
	}
}

// missedFaults adds rows for faults that were planned but never injected.
func (p *view) missedFaults(r *evidence.Run) {
	for i, f := range r.Missed {
		if i == maxFaultRows {
			p.MoreFaults = strings.TrimSpace(fmt.Sprintf("%s %s (never injected) in %s.", p.MoreFaults,
				timeline.More(len(r.Missed)-i, "fault"), rundir.HistoryFile))
			return
		}
		p.Faults = append(p.Faults, faultRow{Name: f.Name, Target: evidence.TargetName(f.Target), Inject: "–", Heal: "–",
			EffectText: "✕ never injected", Detail: f.Detail})
	}
}

func (p *view) properties(r *evidence.Run) {
	for _, res := range r.Judgement.Results {
		if evidence.IsNotApplicable(r, &res) {
			p.NotApplicable = append(p.NotApplicable, field{string(res.Property), res.Summary})
			continue
		}
		row := propertyRow{Name: string(res.Property), Outcome: string(res.Outcome), Total: res.Total,
			Summary: res.Summary, Expected: r.Manifest.Expect[string(res.Property)],
			Because: r.Manifest.Because[string(res.Property)], Counts: countsText(res.Counts)}
		row.Class, row.Shape = timeline.OutcomeStyle(res.Outcome)
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

func (p *view) violations(r *evidence.Run) {
	worst := r.Worst
	for res := range evidence.Each(r.Judgement.Results) {
		if res.Total > len(res.Violations) && len(res.Violations) > 0 {
			p.ViolationNotes = append(p.ViolationNotes, fmt.Sprintf("%s: the worst %s of %s.",
				res.Property, format.Number(len(res.Violations)), format.Count(res.Total, "violation")))
		}
		for v := range evidence.Each(res.Violations) {
			row := violationRow{Property: string(res.Property), Start: format.Instant(v.Start), Class: string(v.Class),
				Text: v.Text, Rule: v.Rule, Events: v.Events, N: len(p.Violations), First: v == worst}
			if w := r.During(v); w.Length() > 0 {
				row.Length = format.Duration(w.Length())
			}
			p.Violations = append(p.Violations, row)
		}
	}
}

func (p *view) unknown(r *evidence.Run) {
	rest := 0
	for s := range evidence.Each(r.History.Spans) {
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
		p.Unknown = append(p.Unknown, unknownRow{r.Who(s.Process),
			evidence.OpName(s.Op) + " " + r.KeyName(s.Key), format.Instant(s.Call), reply, int(s.Invoked)})
	}
	if rest > 0 {
		p.MoreUnknown = fmt.Sprintf("%s in %s.", timeline.More(rest, "operation"), rundir.HistoryFile)
	}
}

func (p *view) clients(r *evidence.Run) {
	p.Clients = r.PerClient()
	if len(p.Clients) > maxClientRows {
		p.MoreClients = timeline.More(len(p.Clients)-maxClientRows, "client") + "."
		p.Clients = p.Clients[:maxClientRows]
	}
}

func (p *view) configuration(r *evidence.Run) {
	if r.HistoryOnly() {
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

// leaseText is the lease that the workload requests. Only a lock that states so renews a hold without one.
func leaseText(m *rundir.Manifest) string {
	switch {
	case m.Lease > 0:
		return format.Duration(m.Lease)
	case m.Can.Has(promise.Watchdog):
		return "none: the lock renews automatically"
	}
	return "none"
}

// optionOwner is the software to which the options of a topology belong.
func optionOwner(t cluster.Topology) string {
	switch t.Kind {
	case cluster.ZooKeeper:
		return "ZooKeeper"
	case cluster.Etcd:
		return "etcd"
	case cluster.Postgres:
		return "PostgreSQL"
	case cluster.MySQL:
		return "MySQL"
	}
	return "redis"
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func topologyText(r *evidence.Run) string {
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
