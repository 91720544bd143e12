package timeline

import (
	"cmp"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// maxGanttRows is how many clients the Gantt plot shows; clients of the violations come first.
const maxGanttRows = 24

// gantt is a plot.Plotter that draws holds and their validity, a row per client,
// and below them a row of overlaps, which are shaded across all rows.
type gantt struct {
	r      *evidence.Run
	key    string
	row    map[int]int // client → row, 0 at the bottom
	window evidence.Interval
}

// overlapRow is below the lowest client, so that labels never cover its bars.
const overlapRow = -1

// overlapPlot shows the holds, their validity and the overlaps in the window of
// the page's timeline.
func overlapPlot(r *evidence.Run) (*plot.Plot, vg.Length, error) {
	t := New(r)
	g := &gantt{r: r, key: t.Key, window: t.D.Window, row: map[int]int{}}
	p := newPlot(r, format.Truncate(format.Line(t.Key), 40)+
		": holds (solid), validity (outline, open if released early), overlap (red)", "")
	p.X.Min, p.X.Max = g.window.From.Seconds(), g.window.Until.Seconds()
	clients := g.clients()
	var names []plot.Tick
	for i, c := range clients {
		g.row[c] = len(clients) - 1 - i
		name := format.Line(r.History.NameProcesses(evidence.ClientName(c)))
		names = append(names, plot.Tick{Value: float64(g.row[c]), Label: name})
	}
	names = append(names, plot.Tick{Value: overlapRow, Label: "overlap"})
	p.Y.Min, p.Y.Max = overlapRow-0.5, float64(len(clients))-0.3
	p.Y.Tick.Marker = plot.ConstantTicks(names)
	p.Y.Tick.Length = 0
	p.Add(g)
	return p, vg.Length(len(clients)+1)*0.9*vg.Centimeter + 3.4*vg.Centimeter + faultBands{r}.height(), nil
}

// clients are the clients of the overlaps, then the others with holds in the window.
func (g *gantt) clients() []int {
	var all []int
	seen := map[int]bool{}
	add := func(c int) {
		if !seen[c] && len(all) < maxGanttRows {
			seen[c] = true
			all = append(all, c)
		}
	}
	for _, v := range g.overlaps() {
		for _, c := range v.Clients {
			add(c)
		}
	}
	for h := range evidence.Each(g.r.Holds) {
		if g.shows(h) {
			add(h.Client)
		}
	}
	return all
}

func (g *gantt) shows(h *evidence.Hold) bool {
	return g.r.KeyName(h.Key) == g.key && h.From <= g.window.Until && max(h.To, h.DrawnValidity()) >= g.window.From
}

// overlaps are the violations in the window that are about two holds.
func (g *gantt) overlaps() []*checker.Violation {
	var all []*checker.Violation
	for res, v := range g.r.Violations() {
		if evidence.Overlaps(res.Property) && v.Key == g.key && v.Start <= g.window.Until && v.End >= g.window.From {
			all = append(all, v)
		}
	}
	return all
}

// Plot draws the rows.
func (g *gantt) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := func(t time.Duration) vg.Length { return x(t.Seconds()) }
	g.drawOverlaps(c, p.X.Tick.Label, at, y(overlapRow))
	rows := make([][]*evidence.Hold, len(g.row))
	for h := range evidence.Each(g.r.Holds) {
		if row, ok := g.row[h.Client]; ok && g.shows(h) {
			rows[row] = append(rows[row], h)
		}
	}
	for row, all := range rows {
		g.drawRow(c, at, y(float64(row)), all)
	}
}

// drawRow draws the holds of one client, and holds that are too short to be drawn separately as one paler bar.
func (g *gantt) drawRow(c draw.Canvas, at func(time.Duration) vg.Length, mid vg.Length, all []*evidence.Hold) {
	half := vg.Points(6)
	var held []evidence.Interval
	for _, h := range all {
		held = append(held, evidence.Interval{From: h.From, Until: h.To})
	}
	width := func(from, until time.Duration) float64 { return float64(at(until) - at(from)) }
	for _, b := range joinThin(held, width, 1, func(int) bool { return false }) {
		h := all[b.first]
		fill, from := clientColor(g.r, h.Client), at(b.From)
		bar := area{from, max(at(b.Until), from+0.5), mid - half, mid + half}
		if b.n > 1 {
			fill.A = 140
		} else if until, whole := h.Promised(); until > 0 {
			outline(c, area{from, at(until), mid - half - vg.Points(4), mid + half}, fill, whole)
		}
		fillArea(c, bar, fill)
	}
}

// drawOverlaps shades each overlap and writes its duration in the row at height
// mid: in the bar, else beside it if neither a bar nor a label is there, else
// nowhere: the page lists all of them.
func (g *gantt) drawOverlaps(c draw.Canvas, style draw.TextStyle, at func(time.Duration) vg.Length, mid vg.Length) {
	half := vg.Points(7)
	var bars []area
	var texts []string
	for _, w := range g.overlapWindows() {
		from := max(at(w.From), c.Min.X)
		bar := area{from, max(min(at(w.Until), c.Max.X), from+1), mid - half, mid + half}
		fillArea(c, area{bar.x1, bar.x2, c.Min.Y, c.Max.Y}, translucent(0xb3122b, 36))
		fillArea(c, area{bar.x1, max(bar.x2-0.6, bar.x1+0.4), bar.y1, bar.y2}, rgb(0xb3122b))
		bars, texts = append(bars, bar), append(texts, format.Duration(w.Length()))
	}
	for i, label := range labelAreas(bars, texts, style, area{x1: c.Min.X, x2: c.Max.X + vg.Points(14)}) {
		if label.x2 <= label.x1 {
			continue
		}
		style.Color, style.XAlign, style.YAlign = rgb(0xb3122b), draw.XLeft, draw.YCenter
		if label.x1 >= bars[i].x1 && label.x2 <= bars[i].x2 {
			style.Color = rgb(0xffffff)
		}
		c.FillText(style, vg.Point{X: label.x1, Y: mid}, texts[i])
	}
}

// overlapWindows are the intervals of the overlaps, each once, in order; the explained one is the first.
func (g *gantt) overlapWindows() []evidence.Interval {
	var all []evidence.Interval
	for _, v := range g.overlaps() {
		if w := g.r.During(v); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b evidence.Interval) int { return cmp.Compare(a.From, b.From) })
	if v := g.r.Worst; v != nil {
		if i := slices.Index(all, g.r.During(v)); i > 0 {
			all = slices.Insert(slices.Delete(all, i, i+1), 0, g.r.During(v))
		}
	}
	return all
}

// labelAreas finds room for the label of each bar, from x1 to x2: in the bar, to
// its right or to its left. The zero area means that there is none.
func labelAreas(bars []area, texts []string, style draw.TextStyle, limit area) []area {
	const margin = vg.Length(4)
	labels := make([]area, len(bars))
	free := func(i int, a area) bool {
		if a.x1 < limit.x1 || a.x2 > limit.x2 {
			return false
		}
		for k := range bars {
			if k != i && (a.intersects(bars[k]) || k < i && a.intersects(labels[k])) {
				return false
			}
		}
		return true
	}
	for i, bar := range bars {
		w := style.Width(texts[i])
		mid := (bar.x1 + bar.x2) / 2
		if inside := (area{x1: mid - w/2, x2: mid + w/2}); w+2*margin <= bar.x2-bar.x1 {
			if !slices.ContainsFunc(labels[:i], inside.intersects) {
				labels[i] = inside
			}
			continue
		}
		right := area{x1: bar.x2, x2: bar.x2 + margin + w} // with the margin: nothing may be between a bar and its label
		left := area{x1: bar.x1 - margin - w, x2: bar.x1}
		if free(i, right) {
			labels[i] = area{x1: right.x1 + margin, x2: right.x2}
		} else if free(i, left) {
			labels[i] = area{x1: left.x1, x2: left.x2 - margin}
		}
	}
	return labels
}

// intersects reports whether two areas overlap on the time axis.
func (a area) intersects(b area) bool { return a.x1 < b.x2 && b.x1 < a.x2 }
