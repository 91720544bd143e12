package timeline

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

func (t *Timeline) clientRows() {
	t.group("CLIENTS")
	t.D.text(0, t.y+32, "as they saw it", `class="sub"`)
	byClient := map[int][]*evidence.Hold{}
	for h := range evidence.Each(t.r.Holds) {
		until := max(h.To, min(h.DrawnValidity(), t.r.History.End))
		if t.isKey(h.Key) && t.D.shows(evidence.Interval{From: h.From, Until: until}) {
			byClient[h.Client] = append(byClient[h.Client], h)
		}
	}
	for _, c := range t.clients {
		t.swatch(c)
		t.waits(c)
		writes := t.writesOf(c)
		t.holds(c, byClient[c], writes)
		t.writes(writes)
		t.y += 44
	}
	if len(t.clients) == 0 {
		t.D.text(axisLeft, t.y+14, "no client was active in this window", `class="quiet"`)
		t.y += 30
	}
	t.y += 4
}

func (t *Timeline) swatch(c int) {
	t.D.raw(`<rect x="%d" y="%.1f" width="9" height="9" rx="2" fill="%s"/>`, axisLeft-23, t.y+11, Palette(ColorOf(t.r, c)))
	t.D.text(axisLeft-29, t.y+20, evidence.ClientName(c), `class="row"`)
}

// waits are thin lines from request to reply, dashed if the outcome is unknown.
func (t *Timeline) waits(c int) {
	var wins []evidence.Interval
	var spans []*history.Span
	for sp := range evidence.Each(t.r.History.Spans) {
		until := min(sp.Return, t.r.History.End)
		if !evidence.Taking(sp) || t.r.ClientIn(sp.Process) != c || !t.isKey(sp.Key) ||
			!t.D.shows(evidence.Interval{From: sp.Call, Until: until}) {
			continue
		}
		wins = append(wins, evidence.Interval{From: sp.Call, Until: until})
		spans = append(spans, sp)
	}
	for _, b := range t.D.blocks(wins, func(int) bool { return false }) {
		sp := spans[b.first]
		y := t.y + 16
		switch {
		case b.n > 1:
			t.D.level(b.Interval, y, format.Count(b.n, "request"), `class="wait"`)
			continue
		case sp.Outcome == history.Info:
			t.D.level(b.Interval, y, "requested at "+format.Instant(sp.Call)+"; the outcome is unknown", `class="wait unknown"`)
			t.D.mark(sp.Call, y, "", `<circle r="3" class="request"/>`)
			continue
		case sp.Outcome == history.Fail:
			t.D.mark(sp.Return, y, "not granted at "+format.Instant(sp.Return), `<path d="M0-5V5" class="denied"/>`)
		}
		t.D.level(b.Interval, y, fmt.Sprintf("waited from %s to %s (%s)", format.Instant(sp.Call), format.Instant(sp.Return),
			format.Duration(sp.Return-sp.Call)), `class="wait"`)
		t.D.mark(sp.Call, y, "", `<circle r="3" class="request"/>`)
	}
}

func (t *Timeline) holds(c int, all []*evidence.Hold, writes []*history.Touched) {
	var wins []evidence.Interval
	for _, h := range all {
		wins = append(wins, evidence.Interval{From: h.From, Until: h.To})
	}
	keep := func(i int) bool { return t.pair != nil && (all[i] == t.pair.A || all[i] == t.pair.B) }
	color := ColorOf(t.r, c)
	for _, b := range t.D.blocks(wins, keep) {
		if b.n > 1 {
			t.D.bar(b.Interval, t.y+8, 16, fmt.Sprintf("%s, each too short to be drawn separately", format.Count(b.n, "hold")),
				fmt.Sprintf(`fill="%s" opacity=".55"`, Palette(color)))
			continue
		}
		t.hold(all[b.first], color, writes)
	}
}

func (t *Timeline) hold(h *evidence.Hold, color int, writes []*history.Touched) {
	w := evidence.Interval{From: h.From, Until: h.To}
	tip := fmt.Sprintf("%s held %s from %s to %s (%s): %s", evidence.ClientName(h.Client), t.Key, format.Instant(h.From),
		format.Instant(h.To), format.Duration(h.To-h.From), h.End)
	if until, _ := h.Promised(); until > 0 {
		p := evidence.Interval{From: h.From, Until: until}
		if until > t.D.Window.Until {
			t.D.mark(t.D.Window.Until, t.y+30, "valid until "+format.Instant(h.ValidUntil()),
				fmt.Sprintf(`<path d="M2-5 9 0 2 5z" fill="%s"/>`, Palette(color)))
		}
		t.D.bar(p, t.y+26, 8, fmt.Sprintf("the grant of %s to %s was valid until %s", t.Key, evidence.ClientName(h.Client),
			format.Instant(h.ValidUntil())), fmt.Sprintf(`fill="url(#p-c%d)" stroke="%s" class="validity"`,
			pattern(color), Palette(color)))
	}
	if t.D.shows(w) {
		t.D.bar(w, t.y+8, 16, tip, fmt.Sprintf(`fill="%s" rx="2"`, Palette(color)))
		texts := []string{"holds"}
		if h.Permits > 0 {
			texts = []string{"holds " + h.Object(""), h.Object(""), fmt.Sprint(h.Permits)}
		}
		if h.Token > 0 {
			texts = []string{fmt.Sprintf("holds · token %d", h.Token), fmt.Sprintf("token %d", h.Token), fmt.Sprint(h.Token)}
		}
		t.D.labelParts(partsOf(w, writes), t.y+20, Ink(max(color, 0)), texts...)
	}
	switch {
	case h.Lost():
		t.D.mark(h.To, t.y+3, fmt.Sprintf("%s at %s", h.End, format.Instant(h.To)), `<path d="M-6-4H6L0 5z" class="lost"/>`)
	case h.End == checker.Crashed:
		t.D.mark(h.To, t.y+16, "crashed at "+format.Instant(h.To), `<path d="M-5-5 5 5M5-5-5 5" class="crash"/>`)
	}
}

func pattern(color int) int {
	if color < 0 {
		return -1
	}
	return color % 8
}

// partsOf are the parts of an interval before, between and after the writes in it: their markers cover no label.
func partsOf(w evidence.Interval, writes []*history.Touched) []evidence.Interval {
	var parts []evidence.Interval
	for _, x := range writes {
		if x.Time > w.From && x.Time < w.Until {
			parts = append(parts, evidence.Interval{From: w.From, Until: x.Time})
			w.From = x.Time
		}
	}
	return append(parts, w)
}

// writesOf are the writes of a client to the guarded resource in the window.
func (t *Timeline) writesOf(c int) []*history.Touched {
	var all []*history.Touched
	for w := range evidence.Each(t.r.History.Touches) {
		if t.r.ClientIn(w.Process) == c && t.isKey(w.Key) && t.D.shows(evidence.Interval{From: w.Time, Until: w.Time}) {
			all = append(all, w)
		}
	}
	return all
}

// writes draws dots, or crosses if a write was stale or overwrote another one.
func (t *Timeline) writes(all []*history.Touched) {
	last, skipped := -1e9, 0
	for _, w := range all {
		tip := format.Instant(w.Time) + ": " + t.r.TouchText(w)
		if w.Read != w.Found || w.Token > 0 && w.Token < w.MaxSeen {
			t.D.mark(w.Time, t.y+16, tip, `<circle r="9" class="halo"/><path d="M-5-5 5 5M5-5-5 5" class="stale"/>`)
			continue
		}
		if x := t.D.x(w.Time); x-last < 5 {
			skipped++
			continue
		}
		if skipped > 0 {
			tip = fmt.Sprintf("%s (after %s too close to draw)", tip, format.Count(skipped, "write"))
		}
		last, skipped = t.D.x(w.Time), 0
		t.D.mark(w.Time, t.y+16, tip, `<circle r="4" class="touch"/>`)
	}
}
