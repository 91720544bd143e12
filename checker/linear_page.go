package checker

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// maxDrawn is how many operations a page shows: porcupine writes every partial order into it.
const maxDrawn = 300

// ErrNothingToShow is returned for a history without lock operations.
var ErrNothingToShow = errors.New("the history has no lock operations to show")

// WriteLinearization writes porcupine's page about the key of the worst violation in j, or else the first key: all of
// its operations if they are few, else the ones around the violation. Faults and reported losses are annotations. The
// page needs no network.
func WriteLinearization(w io.Writer, h *history.History, j Judgement) error {
	v, err := safeView(h, j.HoldOptions())
	if err != nil {
		return fmt.Errorf("drawing the linearization: %w", err)
	}
	k, ops := v.linearizationOps(&j)
	if len(ops) == 0 {
		return ErrNothingToShow
	}
	model := search.Model(k.kind, k.permits, v.describe)
	_, info := porcupine.CheckOperationsVerbose(model, v.rows(ops, search.Operations(ops, 0)), defaultSearch)
	from, to := ops[0].Call, ops[0].Call
	for _, op := range ops {
		from = min(from, op.Call)
		if to = max(to, op.Call); !op.Unknown {
			to = max(to, op.Return)
		}
	}
	info.AddAnnotations(v.annotations(from, to))
	if err := porcupine.Visualize(model, info, w); err != nil {
		return fmt.Errorf("drawing the linearization: %w", err)
	}
	return nil
}

// linearizationOps are the operations on the page.
func (v *view) linearizationOps(j *Judgement) (keyOps, []search.Op) {
	worst := j.worstOrdering()
	for i, k := range v.keyedOps() {
		if len(k.spans) == 0 || k.kind == search.Unmodelled || (worst != nil && v.h.Keys[i] != worst.Key) {
			continue
		}
		v.prepare(&k)
		switch {
		case len(k.spans) <= maxDrawn:
			return k, v.modelOps(&k)
		case k.kind == search.Semaphore:
			t := v.h.Spans[k.spans[0]].Call
			if worst != nil {
				t = worst.Start
			}
			return k, k.permitOps(v, t)
		}
		return k, v.windowOps(v.holdsNear(v.byKey[i], worst))
	}
	return keyOps{}, nil
}

// maxRows is up to which number a client has the row of its number; the page draws the rows in between as well.
const maxRows = 64

// rows gives a row to each client, the row of its number if all are small, and then to each operation of unknown
// outcome, which lasts to the end of the page.
func (v *view) rows(ops []search.Op, shown []porcupine.Operation) []porcupine.Operation {
	row, next := make(map[int]int), 0
	if v.h.Clients <= maxRows { // no other operation has the row of a client, also of one without an operation here
		next = v.h.Clients
	}
	client := func(i int) (number int, known bool) {
		if i >= len(ops) || ops[i].Unknown {
			return 0, false
		}
		return ops[i].Process.Client(v.h.Clients), true
	}
	for i := range shown {
		if c, known := client(i); known && c < maxRows {
			row[c], next = c, max(next, c+1)
		}
	}
	for i := range shown {
		id, known := client(i)
		if !known {
			id = -1 - i
		}
		if _, ok := row[id]; !ok {
			row[id] = next
			next++
		}
		shown[i].ClientId = row[id]
	}
	return shown
}

// worstOrdering is the worst violation that is about the order of operations.
func (j *Judgement) worstOrdering() *Violation {
	for _, p := range []Property{Linearizable, Exclusion, LeaseExclusion, Fencing, Damage} {
		if r := j.Result(p); r != nil && len(r.Violations) > 0 {
			return &r.Violations[0]
		}
	}
	return nil
}

// holdsNear are the holds around the violation, or the first ones. Those that the violation is about are among them.
func (v *view) holdsNear(holds []int32, worst *Violation) []int32 {
	if worst == nil || len(holds) == 0 {
		return holds[:min(len(holds), 2*windowHolds)]
	}
	evidence := make(map[int]bool)
	for _, e := range worst.Events {
		evidence[e] = true
	}
	y, x := holds[0], int32(-1)
	for i, h := range refsAt(v.holds, holds) {
		switch {
		case evidence[v.granted(h)] && x < 0:
			x, y = i, i
		case evidence[v.granted(h)], x < 0 && h.from <= worst.Start:
			y = i
		}
	}
	return around(holds, y, x)
}

func (v *view) describe(op *search.Op) string {
	name := html.EscapeString(v.h.Owners[op.Owner]) // the page shows it as HTML
	switch op.Kind {
	case search.OpHorizon:
		return "end: later effects do not count"
	case search.OpBusyTry:
		return "try refused (" + name + ")"
	case search.OpHoldLost:
		return "hold lost (" + name + ")"
	case search.OpLeaseEnd:
		return "lease ends (" + name + ")"
	case search.OpRelease:
		return "release (" + name + ")"
	}
	text := "acquire (" + name + ")"
	if op.Span >= 0 {
		if t := v.h.Spans[op.Span].Token; t != 0 {
			text += fmt.Sprintf(" token %d", t)
		}
	}
	return text
}

// annotations are the faults and the notices between from and to.
func (v *view) annotations(from, to time.Duration) []porcupine.Annotation {
	var marks []porcupine.Annotation
	healed := make(map[int]time.Duration)
	for _, f := range v.h.Faults {
		if f.Phase == history.Healed {
			healed[f.ID] = f.Time
		}
	}
	for _, f := range v.h.Faults {
		until := f.Time
		if end, ok := healed[f.ID]; ok && f.Phase == history.Injected {
			until = end
		}
		if until < from || f.Time > to || f.Phase == history.Healed {
			continue
		}
		marks = append(marks, porcupine.Annotation{
			Tag:   html.EscapeString(f.Name + " " + string(f.Phase)), // in one row they would hide each other
			Start: int64(max(f.Time, from)), End: int64(min(until, to)),
			Description: html.EscapeString(cmp.Or(f.Target, f.Name)),
			Details:     html.EscapeString(f.Target + " " + f.Detail), BackgroundColor: "#f4c9a8",
		})
	}
	for _, n := range v.h.Notices {
		if n.Time < from || n.Time > to || n.F == history.Renewed {
			continue
		}
		marks = append(marks, porcupine.Annotation{
			Tag: "notice", Start: int64(n.Time), Description: fmt.Sprintf("client %d %s", n.Process.Client(v.h.Clients), n.F),
		})
	}
	return marks
}
