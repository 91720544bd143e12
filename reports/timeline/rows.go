package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// block is one or more neighboring intervals that are drawn as one, because each
// is too narrow.
type block struct {
	evidence.Interval
	first int // index of the first
	n     int
}

// blocks joins neighbors that are too narrow to be drawn separately, except where keep returns true, so that a
// violation is never merged with others.
func (d *drawing) blocks(all []evidence.Interval, keep func(i int) bool) []block {
	return joinThin(all, d.width, 1.6, keep)
}

// joinThin joins neighbors whose widths, and the gaps between them, are less than least.
func joinThin(all []evidence.Interval, width func(from, until time.Duration) float64, least float64,
	keep func(i int) bool) []block {
	var out []block
	open := false
	for i, w := range all {
		thin := width(w.From, w.Until) < least && !keep(i)
		if n := len(out); thin && open && width(out[n-1].Until, w.From) < least {
			out[n-1].Until, out[n-1].n = max(out[n-1].Until, w.Until), out[n-1].n+1
			continue
		}
		out = append(out, block{w, i, 1})
		open = thin
	}
	return out
}

// shows reports whether an interval overlaps the window.
func (d *drawing) shows(w evidence.Interval) bool {
	return w.From <= d.Window.Until && w.Until >= d.Window.From
}

func (t *Timeline) faults() {
	if len(t.r.Faults) == 0 {
		return
	}
	t.group("FAULTS")
	drawn, omitted := 0, 0
	for f := range evidence.Each(t.r.Faults) {
		w := evidence.Interval{From: f.Inject, Until: f.End(t.r.History.End)}
		if !t.D.shows(w) {
			continue
		}
		if drawn == maxFaults {
			omitted++
			continue
		}
		drawn++
		t.fault(f, w)
	}
	if drawn == 0 {
		t.D.text(axisLeft, t.y+14, "none in this window", `class="quiet"`)
		t.y += 22
	}
	t.notDrawn(omitted, "fault", " in this window")
	t.y += 6
}

func (t *Timeline) fault(f *evidence.Fault, w evidence.Interval) {
	name := f.Name
	if f.Target != "" {
		name += " · " + evidence.TargetName(f.Target)
	}
	tip := fmt.Sprintf("%s: %s, %s", name, f.Began(), f.Healing())
	t.D.bar(w, t.y+3, 17, tip+". "+format.Capitalize(f.Detail), `class="fault" rx="2"`)
	texts := []string{name}
	if state := f.State(); state != "" {
		texts = []string{name + ": " + format.Truncate(state, 60), name}
	}
	t.faultLabel(w, f.Effects, texts)
	for _, e := range f.Effects {
		if t.D.shows(evidence.Interval{From: e.Time, Until: e.Time}) {
			t.D.mark(e.Time, t.y+11.5, "took effect at "+format.Instant(e.Time)+": "+e.Detail,
				`<path d="M0-8 5 0 0 8-5 0z" class="effect"/>`)
		}
	}
	t.y += 22
}

// faultLabel writes in the bar if there is room, else to its right or to its left.
func (t *Timeline) faultLabel(w evidence.Interval, effects []history.Fault, texts []string) {
	name, bar := texts[len(texts)-1], w.From
	const inside, beside = `class="in" fill="#10202c"`, `class="in" fill="var(--ink)"`
	for i := range effects { // begin after the marks that would cover the text
		if b := effects[i].Time; b < w.Until && t.D.width(w.From, b) < textWidth(texts[0])+20 {
			w.From = max(w.From, b)
		}
	}
	for _, text := range texts {
		if textWidth(text)+24 <= t.D.width(w.From, w.Until) {
			t.D.label(max(w.From, t.D.Window.From), 12, t.y+15.5, text, inside)
			return
		}
	}
	if t.D.x(w.Until)+textWidth(name)+14 < axisRight {
		t.D.label(w.Until, 10, t.y+15.5, name, beside)
		return
	}
	t.D.label(max(bar, t.D.Window.From), -6, t.y+15.5, name, beside+` text-anchor="end"`)
}

func (t *Timeline) masters() {
	if t.r.Quorum() || len(t.r.Samples) == 0 || len(t.r.Witness.Nodes) < 2 {
		return
	}
	word := t.r.MasterWord()
	t.group(strings.ToUpper(word))
	t.D.text(0, t.y+32, "as sampled", `class="sub"`)
	top := t.y
	for _, node := range t.r.Witness.Nodes {
		drawn := false
		for _, st := range t.r.Witness.States(node, t.D.Window, evidence.SameRole) {
			if !evidence.IsMaster(&st.First) || !t.D.shows(st.Interval) {
				continue
			}
			drawn = true
			tip := fmt.Sprintf("%s was %s from %s to %s", t.r.Witness.Name(node), word, format.Instant(st.From),
				format.Instant(st.Until))
			t.D.bar(st.Interval, t.y+3, 17, tip, `class="master" rx="2"`)
			t.D.labelBar(st.Interval, t.y+15.5, "#ffffff", t.r.Witness.Name(node), node)
		}
		if drawn {
			t.y += 22
		}
	}
	t.y = max(t.y, top+34) + 6
}

func (t *Timeline) overlaps() {
	name := "OVERLAP"
	if t.v != nil && t.pair == nil {
		name = "VIOLATION"
	}
	t.group(name)
	elsewhere := 0
	seen := map[evidence.Interval]bool{}
	var shown []*checker.Violation
	for res, v := range t.r.Violations() {
		w := t.r.During(v)
		if !evidence.IsDrawn(res) || seen[w] || !t.D.shows(w) || t.pair != nil && !evidence.Overlaps(res.Property) {
			continue
		}
		if v.Key != "" && v.Key != t.Key {
			elsewhere++
			continue
		}
		seen[w] = true
		shown = append(shown, v)
	}
	t.overlapBars(shown)
	t.notDrawn(elsewhere, "violation", " of other keys")
	if len(seen) == 0 && t.r.Judged {
		t.D.text(axisLeft, t.y+16, "none", `class="good"`)
	}
	t.y += 28
}

// overlapBars draws violations that may cover each other: the explained one over the others, and its label before
// theirs.
func (t *Timeline) overlapBars(shown []*checker.Violation) {
	main := -1
	if t.v != nil {
		main = slices.IndexFunc(shown, func(v *checker.Violation) bool { return t.r.During(v) == t.r.During(t.v) })
	}
	if main >= 0 {
		v := shown[main]
		shown = append([]*checker.Violation{v}, slices.Delete(slices.Clone(shown), main, main+1)...)
	}
	for i := len(shown) - 1; i >= 0; i-- {
		look := `class="red" rx="2"`
		if i == 0 && main >= 0 {
			look = `class="red main" rx="2"`
		}
		t.D.bar(t.visible(t.r.During(shown[i])), t.y+3, 19, shown[i].Text, look)
	}
	for i, v := range shown {
		w := t.r.During(v)
		t.overlapLabel(w)
		if i == 0 && main >= 0 {
			t.labeled = append(t.labeled, [2]float64{t.D.x(w.From), t.D.x(t.visible(w).Until)})
		}
	}
}

// visible is an interval that is long enough to be seen.
func (t *Timeline) visible(w evidence.Interval) evidence.Interval {
	for t.D.width(w.From, w.Until) < 3 && w.Until < t.D.Window.Until {
		w.Until += t.D.Window.Length()/1000 + 1
	}
	return w
}

// overlapLabel writes the length of a violation into its bar or beside it, unless another label is there.
func (t *Timeline) overlapLabel(w evidence.Interval) {
	wide := t.visible(w)
	text := format.Duration(w.Length())
	if w.Length() == 0 {
		text = format.Instant(w.From)
	}
	if textWidth(text)+12 <= t.D.width(w.From, w.Until) {
		mid := max(w.From, t.D.Window.From)
		if t.reserve(t.D.x(mid)+7, text) {
			t.D.label(mid, 7, t.y+17, text, `class="in strong" fill="#ffffff"`)
		}
		return
	}
	left := t.D.x(wide.Until)+textWidth(text)+10 > axisRight
	at := t.D.x(wide.Until) + 6
	if left {
		at = t.D.x(wide.From) - 6 - textWidth(text)
	}
	if !t.reserve(at, text) {
		return
	}
	if left {
		t.D.label(wide.From, -6, t.y+17, text, `class="in strong redtext" text-anchor="end"`)
		return
	}
	t.D.label(wide.Until, 6, t.y+17, text, `class="in strong redtext"`)
}

// reserve is false if another label is where text would be; its tooltip has it.
func (t *Timeline) reserve(at float64, text string) bool {
	for _, l := range t.labeled {
		if l[0] < at+textWidth(text) && at < l[1] {
			return false
		}
	}
	t.labeled = append(t.labeled, [2]float64{at, at + textWidth(text)})
	return true
}
