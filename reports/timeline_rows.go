package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// block is one or more neighboring intervals that are drawn as one, because each
// is too narrow.
type block struct {
	interval
	first int // index of the first
	n     int
}

// blocks joins neighbors that are too narrow to be drawn separately, except those
// that keep returns true for, so that a violation is never merged with others.
func (d *drawing) blocks(all []interval, keep func(i int) bool) []block {
	return joinThin(all, d.width, 1.6, keep)
}

// joinThin joins neighbors whose widths, and the gaps between them, are less than least.
func joinThin(all []interval, width func(from, until time.Duration) float64, least float64,
	keep func(i int) bool) []block {
	var out []block
	open := false
	for i, w := range all {
		thin := width(w.from, w.until) < least && !keep(i)
		if n := len(out); thin && open && width(out[n-1].until, w.from) < least {
			out[n-1].until, out[n-1].n = max(out[n-1].until, w.until), out[n-1].n+1
			continue
		}
		out = append(out, block{w, i, 1})
		open = thin
	}
	return out
}

// shows reports whether an interval overlaps the window.
func (d *drawing) shows(w interval) bool { return w.from <= d.window.until && w.until >= d.window.from }

func (t *timeline) faults() {
	if len(t.r.faults) == 0 {
		return
	}
	t.group("FAULTS")
	drawn, omitted := 0, 0
	for f := range each(t.r.faults) {
		w := interval{f.inject, f.end(t.r.History.End)}
		if !t.d.shows(w) {
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
		t.d.text(axisLeft, t.y+14, "none in this window", `class="quiet"`)
		t.y += 22
	}
	t.notDrawn(omitted, "fault", " in this window")
	t.y += 6
}

func (t *timeline) fault(f *injection, w interval) {
	name := f.name
	if f.target != "" {
		name += " · " + targetName(f.target)
	}
	tip := fmt.Sprintf("%s: injected at %s, %s", name, format.Instant(f.inject), f.healing())
	t.d.bar(w, t.y+3, 17, tip+". "+format.Capitalize(f.detail), `class="fault" rx="2"`)
	texts := []string{name}
	if state := f.state(); state != "" {
		texts = []string{name + ": " + format.Truncate(state, 60), name}
	}
	t.faultLabel(w, f.effects, texts)
	for _, e := range f.effects {
		if t.d.shows(interval{e.Time, e.Time}) {
			t.d.mark(e.Time, t.y+11.5, "took effect at "+format.Instant(e.Time)+": "+e.Detail,
				`<path d="M0-8 5 0 0 8-5 0z" class="effect"/>`)
		}
	}
	t.y += 22
}

// faultLabel writes in the bar if there is room, else to its right or to its left.
func (t *timeline) faultLabel(w interval, effects []history.Fault, texts []string) {
	name, bar := texts[len(texts)-1], w.from
	const inside, beside = `class="in" fill="#10202c"`, `class="in" fill="var(--ink)"`
	for i := range effects { // begin after the marks that would cover the text
		if b := effects[i].Time; b < w.until && t.d.width(w.from, b) < textWidth(texts[0])+20 {
			w.from = max(w.from, b)
		}
	}
	for _, text := range texts {
		if textWidth(text)+24 <= t.d.width(w.from, w.until) {
			t.d.label(max(w.from, t.d.window.from), 12, t.y+15.5, text, inside)
			return
		}
	}
	if t.d.x(w.until)+textWidth(name)+14 < axisRight {
		t.d.label(w.until, 10, t.y+15.5, name, beside)
		return
	}
	t.d.label(max(bar, t.d.window.from), -6, t.y+15.5, name, beside+` text-anchor="end"`)
}

func (t *timeline) masters() {
	if t.r.quorum() || len(t.r.Samples) == 0 || len(t.r.witness.nodes) < 2 {
		return
	}
	word := t.r.masterWord()
	t.group(strings.ToUpper(word))
	t.d.text(0, t.y+32, "as sampled", `class="sub"`)
	top := t.y
	for _, node := range t.r.witness.nodes {
		drawn := false
		for _, st := range t.r.witness.states(node, t.d.window, sameRole) {
			if !isMaster(&st.first) || !t.d.shows(st.interval) {
				continue
			}
			drawn = true
			tip := fmt.Sprintf("%s was %s from %s to %s", t.r.witness.name(node), word, format.Instant(st.from),
				format.Instant(st.until))
			t.d.bar(st.interval, t.y+3, 17, tip, `class="master" rx="2"`)
			t.d.labelBar(st.interval, t.y+15.5, "#ffffff", t.r.witness.name(node), node)
		}
		if drawn {
			t.y += 22
		}
	}
	t.y = max(t.y, top+34) + 6
}

func (t *timeline) overlaps() {
	name := "OVERLAP"
	if t.v != nil && t.pair == nil {
		name = "VIOLATION"
	}
	t.group(name)
	elsewhere := 0
	seen := map[interval]bool{}
	var shown []*checker.Violation
	for res, v := range t.r.violations() {
		w := t.r.during(v)
		if !isDrawn(res) || seen[w] || !t.d.shows(w) || t.pair != nil && !overlaps(res.Property) {
			continue
		}
		if v.Key != "" && v.Key != t.key {
			elsewhere++
			continue
		}
		seen[w] = true
		shown = append(shown, v)
	}
	t.overlapBars(shown)
	t.notDrawn(elsewhere, "violation", " of other keys")
	if len(seen) == 0 && t.r.Judged {
		t.d.text(axisLeft, t.y+16, "none", `class="good"`)
	}
	t.y += 28
}

// overlapBars draws violations that may cover each other: the one that the page explains over the others, and its label
// before theirs.
func (t *timeline) overlapBars(shown []*checker.Violation) {
	main := -1
	if t.v != nil {
		main = slices.IndexFunc(shown, func(v *checker.Violation) bool { return t.r.during(v) == t.r.during(t.v) })
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
		t.d.bar(t.visible(t.r.during(shown[i])), t.y+3, 19, shown[i].Text, look)
	}
	for i, v := range shown {
		w := t.r.during(v)
		t.overlapLabel(w)
		if i == 0 && main >= 0 {
			t.labeled = append(t.labeled, [2]float64{t.d.x(w.from), t.d.x(t.visible(w).until)})
		}
	}
}

// visible is an interval that is long enough to be seen.
func (t *timeline) visible(w interval) interval {
	for t.d.width(w.from, w.until) < 3 && w.until < t.d.window.until {
		w.until += t.d.window.length()/1000 + 1
	}
	return w
}

// overlapLabel writes the length of a violation into its bar or beside it, unless another label is there.
func (t *timeline) overlapLabel(w interval) {
	wide := t.visible(w)
	text := format.Duration(w.length())
	if w.length() == 0 {
		text = format.Instant(w.from)
	}
	if textWidth(text)+12 <= t.d.width(w.from, w.until) {
		mid := max(w.from, t.d.window.from)
		if t.reserve(t.d.x(mid)+7, text) {
			t.d.label(mid, 7, t.y+17, text, `class="in strong" fill="#ffffff"`)
		}
		return
	}
	left := t.d.x(wide.until)+textWidth(text)+10 > axisRight
	at := t.d.x(wide.until) + 6
	if left {
		at = t.d.x(wide.from) - 6 - textWidth(text)
	}
	if !t.reserve(at, text) {
		return
	}
	if left {
		t.d.label(wide.from, -6, t.y+17, text, `class="in strong redtext" text-anchor="end"`)
		return
	}
	t.d.label(wide.until, 6, t.y+17, text, `class="in strong redtext"`)
}

// reserve is false if another label is where text would be; its tooltip has it.
func (t *timeline) reserve(at float64, text string) bool {
	for _, l := range t.labeled {
		if l[0] < at+textWidth(text) && at < l[1] {
			return false
		}
	}
	t.labeled = append(t.labeled, [2]float64{at, at + textWidth(text)})
	return true
}
