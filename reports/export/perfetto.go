package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// Process numbers of the trace. A client has its number plus one.
const (
	traceFaults     = 1_900_000_001
	traceViolations = 1_900_000_002
	traceNodes      = 1_800_000_001
)

// TraceEvent is an event of the Trace Event Format (Google, "Trace Event Format",
// 2016), which ui.perfetto.dev and chrome://tracing open. Times are in microseconds.
type TraceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"` // X: a slice, i: an instant, s and f: a flow, M: a name
	Time  float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    int            `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"` // f: "e" for the slice around it
	Scope string         `json:"s,omitempty"`  // i: "g" for a line across all tracks
	Args  map[string]any `json:"args,omitempty"`
}

// trace writes a trace. Slices of one track must not overlap, so each track has as
// many lanes as overlap at once.
type trace struct {
	r     *evidence.Run
	w     *bufio.Writer
	enc   *json.Encoder
	err   error
	any   bool
	lanes map[string]*laneSet
	next  map[int]int // thread number by process
}

// laneSet are the lanes of one track, each with the end of its last slice.
type laneSet struct {
	name string
	tids []int
	ends []time.Duration
}

// Perfetto writes the run as a trace: a process for each client with its
// operations, holds and writes, and one for each node with its role and the holder
// of each key; flows from grants to writes; faults as instants across all tracks.
func Perfetto(r *evidence.Run, w io.Writer) error {
	b := bufio.NewWriter(w)
	t := &trace{r: r, w: b, enc: json.NewEncoder(format.JSON(b)), lanes: map[string]*laneSet{}, next: map[int]int{}}
	fmt.Fprint(b, `{"displayTimeUnit":"ms","traceEvents":[`+"\n")
	t.process(traceFaults, "faults", -4)
	t.process(traceViolations, "violations", -3)
	t.faults()
	t.violations()
	t.nodes()
	t.clients()
	fmt.Fprint(b, "]}\n")
	if t.err != nil {
		return t.err
	}
	return b.Flush()
}

func (t *trace) add(e TraceEvent) {
	if t.any {
		t.w.WriteString(",")
	}
	t.any = true
	if err := t.enc.Encode(e); err != nil && t.err == nil {
		t.err = fmt.Errorf("writing the trace: %w", err)
	}
}

func (t *trace) text(s string) string { return t.r.PlainText(s) }

func (t *trace) process(pid int, name string, order int) {
	t.add(TraceEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": t.text(name)}})
	t.add(TraceEvent{Name: "process_sort_index", Phase: "M", PID: pid, Args: map[string]any{"sort_index": order}})
}

// lane is a thread of the track where a slice from w.from overlaps no other. Slices
// come in order of their begin.
func (t *trace) lane(pid int, track string, w evidence.Interval) int {
	key := fmt.Sprint(pid, " ", track)
	set := t.lanes[key]
	if set == nil {
		set = &laneSet{name: track}
		t.lanes[key] = set
	}
	for i, end := range set.ends {
		if end <= w.From {
			set.ends[i] = w.Until
			return set.tids[i]
		}
	}
	t.next[pid]++
	tid := t.next[pid]
	set.tids, set.ends = append(set.tids, tid), append(set.ends, w.Until)
	name := t.text(track)
	if n := len(set.tids); n > 1 {
		name = fmt.Sprintf("%s (%d)", name, n)
	}
	t.add(TraceEvent{Name: "thread_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
	return tid
}

// slice adds a slice and returns its thread.
func (t *trace) slice(pid int, track, cat, name string, w evidence.Interval, args map[string]any) int {
	w.Until = max(w.From, w.Until)
	tid, dur := t.lane(pid, track, w), traceTime(w.Length())
	t.add(TraceEvent{Name: t.text(name), Cat: cat, Phase: "X", Time: traceTime(w.From), Dur: &dur, PID: pid, TID: tid,
		Args: args})
	return tid
}

func traceTime(d time.Duration) float64 { return float64(d) / 1e3 }

func (t *trace) instant(at time.Duration, name, detail string) {
	t.add(TraceEvent{Name: t.text(name), Cat: "fault", Phase: "i", Time: traceTime(at), PID: traceFaults, TID: 0,
		Scope: "g", Args: map[string]any{"detail": t.text(detail)}})
}

func (t *trace) faults() {
	for f := range evidence.Each(t.r.Faults) {
		name := strings.TrimSpace(f.Name + " " + evidence.TargetName(f.Target))
		t.slice(traceFaults, "faults", "fault", name, evidence.Interval{From: f.Inject, Until: f.End(t.r.History.End)},
			map[string]any{"detail": t.text(f.Detail), "healed": f.Heal != history.Infinity})
		t.instant(f.Inject, name+" is injected", f.Detail)
		for _, e := range f.Effects {
			t.instant(e.Time, name+" takes effect", e.Detail)
		}
		if f.Heal != history.Infinity && !f.Single {
			t.instant(f.Heal, name+" is healed", "")
		}
	}
	for _, n := range t.r.Notes {
		t.instant(n.Time, strings.TrimSpace(n.Name+" "+evidence.TargetName(n.Target)), n.Detail)
	}
}

func (t *trace) violations() {
	type found struct {
		res *checker.Result
		v   *checker.Violation
	}
	var all []found
	for res, v := range t.r.Violations() {
		if evidence.IsDrawn(res) {
			all = append(all, found{res, v})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return int(a.v.Start - b.v.Start) })
	for _, f := range all {
		t.slice(traceViolations, "violations", "violation", string(f.res.Property), t.r.During(f.v),
			map[string]any{"text": t.text(f.v.Text), "key": t.text(f.v.Key), "class": f.v.Class, "events": f.v.Events})
	}
}

func (t *trace) nodes() {
	h := t.r.History
	whole := evidence.Interval{From: 0, Until: max(h.End, 1)}
	for i, node := range t.r.Witness.Nodes {
		pid := traceNodes + i
		t.process(pid, t.r.Witness.Name(node), -2)
		for _, st := range t.r.Witness.States(node, whole, evidence.SameRole) {
			name := st.First.Role
			if !st.First.Up {
				name = "does not reply"
			}
			t.slice(pid, "role", "node", name, st.Interval, nil)
		}
	}
	keyOf := map[string]int{}
	for i, k := range h.Keys {
		keyOf[k] = i
	}
	var d timeline.Columns
	d.AddNodes(t.r, whole, keyOf)
	s := &d.States
	for i := range s.From {
		from := time.Duration(s.From[i]) * time.Microsecond
		args := map[string]any{}
		if s.TTL[i] >= 0 {
			args["ttl_ms"] = float64(s.TTL[i]) / 1e3
		}
		t.slice(traceNodes+int(s.Node[i]), "key "+h.Keys[s.Key[i]], "key", s.Holders[s.Holder[i]].Label,
			evidence.Interval{From: from, Until: from + time.Duration(s.Length[i])*time.Microsecond}, args)
	}
}

func (t *trace) clients() {
	h := t.r.History
	for _, c := range t.r.PerClient() {
		t.process(c.Client+1, evidence.ClientName(c.Client), c.Client)
	}
	for s := range evidence.Each(h.Spans) {
		t.slice(s.Process.Client(h.Clients)+1, "operations", "operation", evidence.OpName(s.Op)+" "+t.r.KeyName(s.Key),
			evidence.Interval{From: s.Call, Until: min(s.Return, h.End)}, map[string]any{"outcome": s.Outcome.String(),
				"event": s.Invoked})
	}
	type owner struct{ key, owner int32 }
	lanes := make([]int, len(t.r.Holds))
	last := map[owner]int{}
	next := 0
	for i := range t.r.Holds {
		x := &t.r.Holds[i]
		args := map[string]any{"end": x.End, "event": x.Granted}
		if x.Token > 0 {
			args["token"] = fmt.Sprint(x.Token)
		}
		if until := x.DrawnValidity(); until > 0 {
			args["valid_until_s"] = until.Seconds()
		}
		lanes[i] = t.slice(x.Client+1, "holds", "hold", t.r.KeyName(x.Key), evidence.Interval{From: x.From, Until: x.To},
			args)
	}
	for i := range h.Touches {
		w := &h.Touches[i]
		for ; next < len(t.r.Holds) && t.r.Holds[next].From <= w.Time; next++ {
			x := &t.r.Holds[next]
			last[owner{x.Key, x.Owner}] = next
		}
		pid := w.Process.Client(h.Clients) + 1
		tid := t.slice(pid, "writes", "write", "write "+t.r.KeyName(w.Key), evidence.Interval{From: w.Time, Until: w.Time},
			map[string]any{"text": t.text(t.r.TouchText(w)), "event": w.Index})
		if k, ok := last[owner{w.Key, w.Owner}]; ok {
			x := &t.r.Holds[k]
			flow := TraceEvent{Name: "grant to write", Cat: "flow", Phase: "s", Time: traceTime(x.From), PID: x.Client + 1,
				TID: lanes[k], ID: i + 1}
			t.add(flow)
			flow.Phase, flow.Bind, flow.Time, flow.PID, flow.TID = "f", "e", traceTime(w.Time), pid, tid
			t.add(flow)
		}
	}
}
