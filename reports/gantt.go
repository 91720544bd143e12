package reports

import (
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// maxLanes is how many clients the Gantt plot shows; those of the violations come first.
const maxLanes = 24

// gantt draws holds and promises, a lane for each client, and below them a lane
// for the overlaps, whose time is shaded across all lanes. It is a plot.Plotter.
type gantt struct {
	r    *Run
	key  string
	lane map[int]int // client → lane, 0 at the bottom
	win  window
}

// overlapLane is below the lowest client, where no label can lie on a bar of one.
const overlapLane = -1

// overlapPlot shows who held, or was promised, the lock when, in the window of
// the worst violation; without one, in the window of the page's picture.
func overlapPlot(r *Run) (*plot.Plot, vg.Length) {
	s := &scene{r: r, v: r.worst()}
	if s.v != nil {
		s.pair, s.key = pairOf(r, s.v), s.v.Key
	}
	if s.key == "" {
		s.key = r.busiestKey()
	}
	g := &gantt{r: r, key: s.key, win: s.window(), lane: map[int]int{}}
	p := newPlot(r, fmt.Sprintf("Who held %s (solid), was promised it (outlined, open: cut short), overlap (red)",
		format.Truncate(plain(s.key), 40)), "")
	p.X.Min, p.X.Max = g.win.from.Seconds(), g.win.until.Seconds()
	clients := g.clients()
	var names []plot.Tick
	for i, c := range clients {
		g.lane[c] = len(clients) - 1 - i
		names = append(names, plot.Tick{Value: float64(g.lane[c]), Label: clientName(c)})
	}
	names = append(names, plot.Tick{Value: overlapLane, Label: "overlap"})
	p.Y.Min, p.Y.Max = overlapLane-0.5, float64(len(clients))-0.3
	p.Y.Tick.Marker = plot.ConstantTicks(names)
	p.Y.Tick.Length = 0
	p.Add(g)
	return p, vg.Length(len(clients)+1)*0.9*vg.Centimeter + 3.4*vg.Centimeter
}

// clients are those of the overlaps first, then those that held in the window.
func (g *gantt) clients() []int {
	var all []int
	seen := map[int]bool{}
	add := func(c int) {
		if !seen[c] && len(all) < maxLanes {
			seen[c] = true
			all = append(all, c)
		}
	}
	for _, v := range g.overlaps() {
		for _, c := range v.Clients {
			add(c)
		}
	}
	for i := range g.r.holds {
		if h := &g.r.holds[i]; g.shows(h) {
			add(h.Client)
		}
	}
	return all
}

func (g *gantt) shows(h *hold) bool {
	return g.r.keyName(h.Key) == g.key && h.From <= g.win.until && max(h.to, h.validUntil()) >= g.win.from
}

// overlaps are the violations that are about two holds, in the window.
func (g *gantt) overlaps() []*checker.Violation {
	var all []*checker.Violation
	for i := range g.r.Judgement.Results {
		res := &g.r.Judgement.Results[i]
		if !overlaps(res.Property) {
			continue
		}
		for k := range res.Violations {
			v := &res.Violations[k]
			if v.Key == g.key && v.Start <= g.win.until && v.End >= g.win.from {
				all = append(all, v)
			}
		}
	}
	return all
}

// overlaps says whether violations of p are holds that were on at once.
func overlaps(p checker.Property) bool {
	return p == checker.Exclusion || p == checker.LeaseExclusion || p == checker.Permits || p == checker.ReadersWriter
}

// Plot draws the lanes.
func (g *gantt) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := func(t time.Duration) vg.Length { return x(t.Seconds()) }
	g.drawOverlaps(c, p.X.Tick.Label, at, y(overlapLane))
	for i := range g.r.holds {
		h := &g.r.holds[i]
		lane, ok := g.lane[h.Client]
		if !ok || !g.shows(h) {
			continue
		}
		mid, half := y(float64(lane)), vg.Points(6)
		fill := g.r.clientColour(h.Client)
		if until, whole := h.promised(); until > 0 {
			outline(c, area{at(h.From), at(until), mid - half - vg.Points(4), mid + half}, fill, whole)
		}
		from := at(h.From)
		box(c, area{from, max(at(h.to), from+0.5), mid - half, mid + half}, fill)
	}
}

// promised is until when somebody counted on a hold's promise, 0 if there was
// none; whole is false if it was given back, and so cut short, before its end.
func (h *hold) promised() (until time.Duration, whole bool) {
	until = h.validUntil()
	released := h.End == checker.Released || h.End == checker.ReleaseUnknown || h.End == checker.ReleaseRefused
	if released && until > h.to {
		return h.to, false
	}
	return until, true
}

// drawOverlaps shades the time of each overlap and says how long it was in the
// lane at height mid: in its bar, else beside it, where neither a neighbour nor
// another label is. One that has no place says nothing: the page has them all.
func (g *gantt) drawOverlaps(c draw.Canvas, style draw.TextStyle, at func(time.Duration) vg.Length, mid vg.Length) {
	half := vg.Points(7)
	var bars []area
	var texts []string
	for _, w := range g.overlapWindows() {
		from := max(at(w.from), c.Min.X)
		bar := area{from, max(min(at(w.until), c.Max.X), from+1), mid - half, mid + half}
		box(c, area{bar.x1, bar.x2, c.Min.Y, c.Max.Y}, clear(0xb3122b, 36))
		box(c, area{bar.x1, max(bar.x2-0.6, bar.x1+0.4), bar.y1, bar.y2}, rgb(0xb3122b))
		bars, texts = append(bars, bar), append(texts, format.Duration(w.length()))
	}
	for i, place := range labelPlaces(bars, texts, style, area{x1: c.Min.X, x2: c.Max.X + vg.Points(14)}) {
		if place.x2 <= place.x1 {
			continue
		}
		style.Color, style.XAlign, style.YAlign = rgb(0xb3122b), draw.XLeft, draw.YCenter
		if place.x1 >= bars[i].x1 && place.x2 <= bars[i].x2 {
			style.Color = rgb(0xffffff)
		}
		c.FillText(style, vg.Point{X: place.x1, Y: mid}, texts[i])
	}
}

// overlapWindows are the times of the overlaps, each once, in order.
func (g *gantt) overlapWindows() []window {
	var all []window
	for _, v := range g.overlaps() {
		if w := g.r.during(v); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b window) int { return int(a.from - b.from) })
	return all
}

// labelPlaces finds a place for the text of each bar, from x1 to x2: inside it,
// to its right, to its left. The zero area is no place at all.
func labelPlaces(bars []area, texts []string, style draw.TextStyle, limit area) []area {
	const air = vg.Length(4)
	places := make([]area, len(bars))
	free := func(i int, a area) bool {
		if a.x1 < limit.x1 || a.x2 > limit.x2 {
			return false
		}
		for k := range bars {
			if k != i && (a.meets(bars[k]) || k < i && a.meets(places[k])) {
				return false
			}
		}
		return true
	}
	for i, bar := range bars {
		w := style.Width(texts[i])
		mid := (bar.x1 + bar.x2) / 2
		if inside := (area{x1: mid - w/2, x2: mid + w/2}); w+2*air <= bar.x2-bar.x1 {
			places[i] = inside
			continue
		}
		right := area{x1: bar.x2, x2: bar.x2 + air + w} // with the air: nothing may lie between a bar and its label
		left := area{x1: bar.x1 - air - w, x2: bar.x1}
		if free(i, right) {
			places[i] = area{x1: right.x1 + air, x2: right.x2}
		} else if free(i, left) {
			places[i] = area{x1: left.x1, x2: left.x2 - air}
		}
	}
	return places
}

// meets says whether two areas share a part of the time axis.
func (a area) meets(b area) bool { return a.x1 < b.x2 && b.x1 < a.x2 }
