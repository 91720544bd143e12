package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

func (t *timeline) clientRows() {
	t.group("CLIENTS")
	t.d.text(0, t.y+32, "as they saw it", `class="sub"`)
	byClient := map[int][]*hold{}
	for h := range each(t.r.holds) {
		until := max(h.to, min(h.validUntil(), t.r.History.End))
		if t.isKey(h.Key) && t.d.shows(interval{h.From, until}) {
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
		t.d.text(axisLeft, t.y+14, "no client was active in this window", `class="quiet"`)
		t.y += 30
	}
	t.y += 4
}

func (t *timeline) swatch(c int) {
	t.d.raw(`<rect x="%d" y="%.1f" width="9" height="9" rx="2" fill="%s"/>`, axisLeft-23, t.y+11, palette(t.r.colorOf(c)))
	t.d.text(axisLeft-29, t.y+20, clientName(c), `class="row"`)
}

// waits are thin lines from request to reply, dashed if the outcome is unknown.
func (t *timeline) waits(c int) {
	var wins []interval
	var spans []*history.Span
	for sp := range each(t.r.History.Spans) {
		until := min(sp.Return, t.r.History.End)
		if !taking(sp) || t.r.clientIn(sp.Process) != c || !t.isKey(sp.Key) || !t.d.shows(interval{sp.Call, until}) {
			continue
		}
		wins = append(wins, interval{sp.Call, until})
		spans = append(spans, sp)
	}
	for _, b := range t.d.blocks(wins, func(int) bool { return false }) {
		sp := spans[b.first]
		y := t.y + 16
		switch {
		case b.n > 1:
			t.d.level(b.interval, y, format.Count(b.n, "request"), `class="wait"`)
			continue
		case sp.Outcome == history.Info:
			t.d.level(b.interval, y, "requested at "+format.Instant(sp.Call)+"; the outcome is unknown", `class="wait unknown"`)
			t.d.mark(sp.Call, y, "", `<circle r="3" class="request"/>`)
			continue
		case sp.Outcome == history.Fail:
			t.d.mark(sp.Return, y, "not granted at "+format.Instant(sp.Return), `<path d="M0-5V5" class="denied"/>`)
		}
		t.d.level(b.interval, y, fmt.Sprintf("waited from %s to %s (%s)", format.Instant(sp.Call), format.Instant(sp.Return),
			format.Duration(sp.Return-sp.Call)), `class="wait"`)
		t.d.mark(sp.Call, y, "", `<circle r="3" class="request"/>`)
	}
}

func (t *timeline) holds(c int, all []*hold, writes []*history.Touched) {
	var wins []interval
	for _, h := range all {
		wins = append(wins, interval{h.From, h.to})
	}
	keep := func(i int) bool { return t.pair != nil && (all[i] == t.pair.a || all[i] == t.pair.b) }
	color := t.r.colorOf(c)
	for _, b := range t.d.blocks(wins, keep) {
		if b.n > 1 {
			t.d.bar(b.interval, t.y+8, 16, fmt.Sprintf("%s, each too short to be drawn separately", format.Count(b.n, "hold")),
				fmt.Sprintf(`fill="%s" opacity=".55"`, palette(color)))
			continue
		}
		t.hold(all[b.first], color, writes)
	}
}

func (t *timeline) hold(h *hold, color int, writes []*history.Touched) {
	w := interval{h.From, h.to}
	tip := fmt.Sprintf("%s held %s from %s to %s (%s): %s", clientName(h.Client), t.key, format.Instant(h.From),
		format.Instant(h.to), format.Duration(h.to-h.From), h.End)
	if until, _ := h.promised(); until > 0 {
		p := interval{h.From, until}
		if until > t.d.window.until {
			t.d.mark(t.d.window.until, t.y+30, "valid until "+format.Instant(h.validUntil()),
				fmt.Sprintf(`<path d="M2-5 9 0 2 5z" fill="%s"/>`, palette(color)))
		}
		t.d.bar(p, t.y+26, 8, fmt.Sprintf("the grant of %s to %s was valid until %s", t.key, clientName(h.Client),
			format.Instant(h.validUntil())), fmt.Sprintf(`fill="url(#p-c%d)" stroke="%s" class="validity"`,
			pattern(color), palette(color)))
	}
	if t.d.shows(w) {
		t.d.bar(w, t.y+8, 16, tip, fmt.Sprintf(`fill="%s" rx="2"`, palette(color)))
		texts := []string{"holds"}
		if h.Permits > 0 {
			texts = []string{"holds " + h.what(""), h.what(""), fmt.Sprint(h.Permits)}
		}
		if h.Token > 0 {
			texts = []string{fmt.Sprintf("holds · token %d", h.Token), fmt.Sprintf("token %d", h.Token), fmt.Sprint(h.Token)}
		}
		t.d.labelParts(partsOf(w, writes), t.y+20, inkOn(max(color, 0)), texts...)
	}
	switch {
	case h.lost():
		t.d.mark(h.to, t.y+3, fmt.Sprintf("%s at %s", h.End, format.Instant(h.to)), `<path d="M-6-4H6L0 5z" class="lost"/>`)
	case h.End == checker.Crashed:
		t.d.mark(h.to, t.y+16, "crashed at "+format.Instant(h.to), `<path d="M-5-5 5 5M5-5-5 5" class="crash"/>`)
	}
}

func pattern(color int) int {
	if color < 0 {
		return -1
	}
	return color % 8
}

// partsOf are the parts of an interval before, between and after the writes in it: their markers cover no label.
func partsOf(w interval, writes []*history.Touched) []interval {
	var parts []interval
	for _, x := range writes {
		if x.Time > w.from && x.Time < w.until {
			parts = append(parts, interval{w.from, x.Time})
			w.from = x.Time
		}
	}
	return append(parts, w)
}

// writesOf are the writes of a client to the guarded resource in the window.
func (t *timeline) writesOf(c int) []*history.Touched {
	var all []*history.Touched
	for w := range each(t.r.History.Touches) {
		if t.r.clientIn(w.Process) == c && t.isKey(w.Key) && t.d.shows(interval{w.Time, w.Time}) {
			all = append(all, w)
		}
	}
	return all
}

// writes draws dots, or crosses if a write was stale or overwrote another one.
func (t *timeline) writes(all []*history.Touched) {
	last, skipped := -1e9, 0
	for _, w := range all {
		tip := format.Instant(w.Time) + ": " + t.r.touchText(w)
		if w.Read != w.Found || w.Token > 0 && w.Token < w.MaxSeen {
			t.d.mark(w.Time, t.y+16, tip, `<circle r="9" class="halo"/><path d="M-5-5 5 5M5-5-5 5" class="stale"/>`)
			continue
		}
		if x := t.d.x(w.Time); x-last < 5 {
			skipped++
			continue
		}
		if skipped > 0 {
			tip = fmt.Sprintf("%s (after %s too close to draw)", tip, format.Count(skipped, "write"))
		}
		last, skipped = t.d.x(w.Time), 0
		t.d.mark(w.Time, t.y+16, tip, `<circle r="4" class="touch"/>`)
	}
}
