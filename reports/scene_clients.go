package reports

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

func (s *scene) clientRows() {
	s.group("CLIENTS")
	s.d.text(0, s.y+30, "as they believe", `class="sub"`)
	byClient := map[int][]*hold{}
	for i := range s.r.holds {
		if h := &s.r.holds[i]; s.mine(h.Key) && s.d.shows(window{h.From, max(h.to, min(h.validUntil(), s.r.History.End))}) {
			byClient[h.Client] = append(byClient[h.Client], h)
		}
	}
	for _, c := range s.clients {
		s.swatch(c)
		s.waits(c)
		s.holds(c, byClient[c])
		s.touches(c)
		s.y += 44
	}
	if len(s.clients) == 0 {
		s.d.text(sceneLeft, s.y+14, "none was active in this window", `class="quiet"`)
		s.y += 30
	}
	s.y += 4
}

func (s *scene) swatch(c int) {
	s.d.raw(`<rect x="%d" y="%.1f" width="9" height="9" rx="2" fill="%s"/>`, sceneLeft-23, s.y+11, palette(s.colour(c)))
	s.d.text(sceneLeft-29, s.y+20, clientName(c), `class="row"`)
}

// waits are thin lines from request to answer; open ended where nobody knows the answer.
func (s *scene) waits(c int) {
	n := s.r.clients()
	var wins []window
	var spans []*history.Span
	for i := range s.r.History.Spans {
		sp := &s.r.History.Spans[i]
		taking := sp.Op == history.OpAcquire || sp.Op == history.OpTry
		until := min(sp.Return, s.r.History.End)
		if !taking || sp.Process.Client(n) != c || !s.mine(sp.Key) || !s.d.shows(window{sp.Call, until}) {
			continue
		}
		wins = append(wins, window{sp.Call, until})
		spans = append(spans, sp)
	}
	for _, b := range s.d.blocks(wins, func(int) bool { return false }) {
		sp := spans[b.first]
		y := s.y + 16
		switch {
		case b.n > 1:
			s.d.level(b.window, y, fmt.Sprintf("%d requests", b.n), `class="wait"`)
			continue
		case sp.Outcome == history.Info:
			s.d.level(b.window, y, "asked at "+format.Instant(sp.Call)+"; the outcome is unknown", `class="wait unknown"`)
			s.d.mark(sp.Call, y, "", `<circle r="3" class="ask"/>`)
			continue
		case sp.Outcome == history.Fail:
			s.d.mark(sp.Return, y, "did not get it at "+format.Instant(sp.Return), `<path d="M0-5V5" class="denied"/>`)
		}
		s.d.level(b.window, y, fmt.Sprintf("waits from %s to %s (%s)", format.Instant(sp.Call), format.Instant(sp.Return),
			format.Duration(sp.Return-sp.Call)), `class="wait"`)
		s.d.mark(sp.Call, y, "", `<circle r="3" class="ask"/>`)
	}
}

func (s *scene) holds(c int, all []*hold) {
	var wins []window
	for _, h := range all {
		wins = append(wins, window{h.From, h.to})
	}
	keep := func(i int) bool { return s.pair != nil && (all[i] == s.pair.a || all[i] == s.pair.b) }
	colour := s.colour(c)
	for _, b := range s.d.blocks(wins, keep) {
		if b.n > 1 {
			s.d.bar(b.window, s.y+8, 16, fmt.Sprintf("%s, each too short to be drawn alone", format.Count(b.n, "hold")),
				fmt.Sprintf(`fill="%s" opacity=".55"`, palette(colour)))
			continue
		}
		s.hold(all[b.first], colour)
	}
}

func (s *scene) hold(h *hold, colour int) {
	w := window{h.From, h.to}
	tip := fmt.Sprintf("%s holds %s from %s to %s (%s): %s", clientName(h.Client), s.key, format.Instant(h.From),
		format.Instant(h.to), format.Duration(h.to-h.From), h.End)
	if until, _ := h.promised(); until > 0 {
		p := window{h.From, until}
		if until > s.d.win.until {
			s.d.mark(s.d.win.until, s.y+30, "the promise goes on until "+format.Instant(until),
				fmt.Sprintf(`<path d="M2-5 9 0 2 5z" fill="%s"/>`, palette(colour)))
		}
		s.d.bar(p, s.y+26, 8, fmt.Sprintf("%s was promised %s until %s", clientName(h.Client), s.key,
			format.Instant(h.validUntil())), fmt.Sprintf(`fill="url(#p-c%d)" stroke="%s" class="promise"`,
			pattern(colour), palette(colour)))
	}
	if s.d.shows(w) {
		s.d.bar(w, s.y+8, 16, tip, fmt.Sprintf(`fill="%s" rx="2"`, palette(colour)))
		texts := []string{"holds"}
		if h.Permits > 0 {
			texts = []string{"holds " + h.what(""), h.what(""), fmt.Sprint(h.Permits)}
		}
		if h.Token > 0 {
			texts = []string{fmt.Sprintf("holds · token %d", h.Token), fmt.Sprintf("token %d", h.Token), fmt.Sprint(h.Token)}
		}
		s.d.inBar(w, s.y+20, inkOn(max(colour, 0)), texts...)
	}
	switch h.End {
	case checker.LossReported, checker.RenewalRefused:
		s.d.mark(h.to, s.y+3, fmt.Sprintf("%s at %s", h.End, format.Instant(h.to)), `<path d="M-6-4H6L0 5z" class="lost"/>`)
	case checker.Crashed:
		s.d.mark(h.to, s.y+16, "crashed at "+format.Instant(h.to), `<path d="M-5-5 5 5M5-5-5 5" class="crash"/>`)
	}
}

func pattern(colour int) int {
	if colour < 0 {
		return -1
	}
	return colour % 8
}

// touches are dots where a write arrived at the guarded resource, crosses where
// it was stale or lost another one.
func (s *scene) touches(c int) {
	n := s.r.clients()
	last, skipped := -1e9, 0
	for i := range s.r.History.Touches {
		t := &s.r.History.Touches[i]
		if t.Process.Client(n) != c || !s.mine(t.Key) || !s.d.shows(window{t.Time, t.Time}) {
			continue
		}
		tip := format.Instant(t.Time) + ": " + s.r.touchText(t)
		if t.Read != t.Found || t.Token > 0 && t.Token < t.MaxSeen {
			s.d.mark(t.Time, s.y+16, tip, `<circle r="9" class="halo"/><path d="M-5-5 5 5M5-5-5 5" class="stale"/>`)
			continue
		}
		if x := s.d.x(t.Time); x-last < 5 {
			skipped++
			continue
		}
		if skipped > 0 {
			tip = fmt.Sprintf("%s (and %s just before it)", tip, format.Count(skipped, "write"))
		}
		last, skipped = s.d.x(t.Time), 0
		s.d.mark(t.Time, s.y+16, tip, `<circle r="4" class="touch"/>`)
	}
}
