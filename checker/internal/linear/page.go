package linear

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// maxDrawn is how many operations a page shows: porcupine writes every partial order into it.
const maxDrawn = 300

// WritePage writes porcupine's page about the key of a violation, or else the first key; drawn is false if there is
// nothing to show.
func WritePage(v *bounds.View, w io.Writer, worst *property.Violation) (drawn bool, err error) {
	k, ops := linearizationOps(v, worst)
	if len(ops) == 0 {
		return false, nil
	}
	model := search.Model(k.Kind, k.Permits, func(op *search.Op) string { return describe(v, op) })
	_, info := porcupine.CheckOperationsVerbose(model, rows(v, ops, search.Operations(ops, 0)), defaultSearch)
	from, to := ops[0].Call, ops[0].Call
	for _, op := range ops {
		from = min(from, op.Call)
		if to = max(to, op.Call); !op.Unknown {
			to = max(to, op.Return)
		}
	}
	info.AddAnnotations(annotations(v, from, to))
	return true, porcupine.Visualize(model, info, w)
}

// linearizationOps are the operations on the page.
func linearizationOps(v *bounds.View, worst *property.Violation) (KeyOps, []search.Op) {
	for i, k := range KeyedOps(v) {
		if len(k.Spans) == 0 || k.Kind == search.Unmodelled || (worst != nil && v.H.Keys[i] != worst.Key) {
			continue
		}
		Prepare(v, &k)
		switch {
		case len(k.Spans) <= maxDrawn:
			return k, ModelOps(v, &k)
		case k.Kind == search.Semaphore:
			t := v.H.Spans[k.Spans[0]].Call
			if worst != nil {
				t = worst.Start
			}
			return k, k.permitOps(v, t)
		}
		return k, WindowOps(v, holdsNear(v, v.ByKey[i], worst))
	}
	return KeyOps{}, nil
}

// maxRows is up to which number a client has the row of its number; the page draws the rows in between as well.
const maxRows = 64

// rows gives a row to each client, the row of its number if all are small, and then to each operation of unknown
// outcome, which lasts to the end of the page.
func rows(v *bounds.View, ops []search.Op, shown []porcupine.Operation) []porcupine.Operation {
	row, next := make(map[int]int), 0
	if v.H.Clients <= maxRows { // no other operation has the row of a client, also of one without an operation here
		next = v.H.Clients
	}
	client := func(i int) (number int, known bool) {
		if i >= len(ops) || ops[i].Unknown {
			return 0, false
		}
		return ops[i].Process.Client(v.H.Clients), true
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

// holdsNear are the holds around the violation, or the first ones. Those that the violation is about are among them.
func holdsNear(v *bounds.View, holds []int32, worst *property.Violation) []int32 {
	if worst == nil || len(holds) == 0 {
		return holds[:min(len(holds), 2*windowHolds)]
	}
	evidence := make(map[int]bool)
	for _, e := range worst.Events {
		evidence[e] = true
	}
	y, x := holds[0], int32(-1)
	for i, h := range refs.At(v.Holds, holds) {
		switch {
		case evidence[v.Granted(h)] && x < 0:
			x, y = i, i
		case evidence[v.Granted(h)], x < 0 && h.From <= worst.Start:
			y = i
		}
	}
	return around(holds, y, x)
}

func describe(v *bounds.View, op *search.Op) string {
	name := html.EscapeString(v.H.Owners[op.Owner]) // the page shows it as HTML
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
		if t := v.H.Spans[op.Span].Token; t != 0 {
			text += fmt.Sprintf(" token %d", t)
		}
	}
	return text
}

// annotations are the faults and the notices between from and to.
func annotations(v *bounds.View, from, to time.Duration) []porcupine.Annotation {
	var marks []porcupine.Annotation
	healed := make(map[int]time.Duration)
	for _, f := range v.H.Faults {
		if f.Phase == history.Healed {
			healed[f.ID] = f.Time
		}
	}
	for _, f := range v.H.Faults {
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
	for _, n := range v.H.Notices {
		if n.Time < from || n.Time > to || n.F == history.Renewed {
			continue
		}
		marks = append(marks, porcupine.Annotation{
			Tag: "notice", Start: int64(n.Time), Description: fmt.Sprintf("client %d %s", n.Process.Client(v.H.Clients), n.F),
		})
	}
	return marks
}
