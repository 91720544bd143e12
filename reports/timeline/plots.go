package timeline

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Size of the plots.
const (
	plotWidth  = 22 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
)

// maxPoints is how many points a plot shows individually; beyond it, each of
// plotBins columns shows its median and its maximum.
const (
	maxPoints = 4000
	plotBins  = 500
)

// newPlot is an empty plot with the run on the time axis.
func newPlot(r *evidence.Run, title, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "time since the start of the run, s", y
	for _, f := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		f.Font.Variant = "Sans"
		f.Color = rgb(0x10202c)
	}
	p.Title.Padding, p.Title.TextStyle.Font.Size = vg.Points(8)+faultBands{r}.height(), vg.Points(12)
	p.X.Min, p.X.Max = 0, max(r.History.End.Seconds(), 0.001)
	p.X.Tick.Marker = timeTicks{}
	p.Legend.Top = true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = rgb(0xe9edf1), rgb(0xe9edf1)
	p.Add(grid, faultBands{r})
	return p
}

func rgb(c uint32) color.NRGBA {
	return color.NRGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255}
}

// translucent is a color with that alpha, 0 to 255.
func translucent(c uint32, a uint8) color.NRGBA {
	n := rgb(c)
	n.A = a
	return n
}

// ColorOf is the index of a client in the palette.
func ColorOf(r *evidence.Run, client int) int {
	if i, ok := r.Color[client]; ok {
		return i
	}
	return client
}

// clientColor is the color of a client on the page.
func clientColor(r *evidence.Run, client int) color.NRGBA {
	var c uint32
	if _, err := fmt.Sscanf(Palette(ColorOf(r, client)), "#%06x", &c); err != nil {
		return rgb(0x8a94a0)
	}
	return rgb(c)
}

// timeTicks are round instants, with the decimals that distinguish neighbors.
type timeTicks struct{}

// Ticks are about nine, in seconds.
func (timeTicks) Ticks(from, until float64) []plot.Tick {
	all := ticks(evidence.Interval{From: time.Duration(from * 1e9), Until: time.Duration(until * 1e9)}, 9)
	var marks []plot.Tick
	for _, t := range all {
		label := fmt.Sprint(t.Seconds())
		if len(all) > 1 {
			label = strings.TrimSuffix(format.Tick(t, all[1]-all[0]), " s")
		}
		marks = append(marks, plot.Tick{Value: t.Seconds(), Label: label})
	}
	return marks
}

// area is a rectangle on a canvas.
type area struct{ x1, x2, y1, y2 vg.Length }

// clip limits an area to the visible time axis; false if nothing of it is visible.
func (a area) clip(c draw.Canvas) (area, bool) {
	a.x1, a.x2 = max(a.x1, c.Min.X), min(a.x2, c.Max.X)
	return a, a.x2 >= a.x1
}

// corners are the four corners of an area, around it.
func (a area) corners() []vg.Point {
	return []vg.Point{{X: a.x1, Y: a.y1}, {X: a.x2, Y: a.y1}, {X: a.x2, Y: a.y2}, {X: a.x1, Y: a.y2}}
}

// fillArea fills an area.
func fillArea(c draw.Canvas, a area, fill color.Color) {
	if a, ok := a.clip(c); ok {
		c.FillPolygon(fill, a.corners())
	}
}

// outline strokes around an area. It leaves the right side open if the area is
// not whole, and either side where the area extends past the plot, with an arrow
// on the right.
func outline(c draw.Canvas, a area, stroke color.Color, whole bool) {
	visible, ok := a.clip(c)
	if !ok {
		return
	}
	line := draw.LineStyle{Color: stroke, Width: vg.Points(0.8)}
	c.StrokeLine2(line, visible.x1, visible.y1, visible.x2, visible.y1)
	c.StrokeLine2(line, visible.x1, visible.y2, visible.x2, visible.y2)
	if visible.x1 == a.x1 {
		c.StrokeLine2(line, visible.x1, visible.y1, visible.x1, visible.y2)
	}
	switch {
	case visible.x2 < a.x2:
		mid, size := visible.y1+vg.Points(2), vg.Points(3) // beside the bar of the hold
		tip := vg.Point{X: visible.x2 + size, Y: mid}
		c.FillPolygon(stroke, []vg.Point{{X: visible.x2, Y: mid - size}, tip, {X: visible.x2, Y: mid + size}})
	case whole:
		c.StrokeLine2(line, visible.x2, visible.y1, visible.x2, visible.y2)
	}
}

// latencyPlot shows how long operations took, by outcome, on a logarithmic axis: a
// lock answers in a millisecond, and its waiters wait for seconds.
func latencyPlot(r *evidence.Run) (*plot.Plot, vg.Length, error) {
	// Not a label of the axis: gonum makes room for it as if the axis were linear, at the cost of the data.
	p := newPlot(r, "Latency of operations including waits, in milliseconds (logarithmic; gray: faults)", "")
	series := []struct {
		name    string
		outcome history.Type
		look    draw.GlyphStyle
	}{
		{"ok", history.OK, draw.GlyphStyle{Color: rgb(0x0072b2), Radius: 2, Shape: draw.CircleGlyph{}}},
		{"refused", history.Fail, draw.GlyphStyle{Color: rgb(0xe69f00), Radius: 2.4, Shape: draw.PyramidGlyph{}}},
		{"outcome unknown", history.Info, draw.GlyphStyle{Color: rgb(0xb3122b), Radius: 2.4, Shape: draw.CrossGlyph{}}},
	}
	low, high, entries := math.Inf(1), 0.0, 0
	for _, s := range series {
		points := thin(tookPoints(r, s.outcome), r.History.End)
		if len(points) == 0 {
			continue
		}
		for _, xy := range points {
			low, high = min(low, xy.Y), max(high, xy.Y)
		}
		sc, err := plotter.NewScatter(points)
		if err != nil {
			return nil, 0, fmt.Errorf("plotting %s: %w", s.name, err)
		}
		sc.GlyphStyle = s.look
		p.Add(sc)
		p.Legend.Add(s.name, sc)
		entries++
	}
	if high == 0 {
		low, high = 0.1, 10
	}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks{}
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(low)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(high*1.01)))
	names, legend := faultBands{r}.height(), vg.Length(entries)*p.Legend.TextStyle.Font.Size*1.2
	p.Title.Padding += legend
	p.Legend.YOffs = names + legend // above the names of the faults, off the data
	return p, plotHeight + names + legend, nil
}

// logTicks are the powers of ten in a range that begins and ends with one. Those of gonum leave out the first, or go
// beyond the last, where a logarithm is rounded.
type logTicks struct{}

// Ticks are major at the powers of ten.
func (logTicks) Ticks(from, until float64) (all []plot.Tick) {
	first, last := int(math.Round(math.Log10(from))), int(math.Round(math.Log10(until)))
	for n := first; n <= last; n++ {
		decade := math.Pow10(n)
		all = append(all, plot.Tick{Value: decade, Label: fmt.Sprint(decade)})
		for i := 2.0; i < 10 && n < last; i++ {
			all = append(all, plot.Tick{Value: i * decade})
		}
	}
	return all
}

// tookPoints are the operations that ended so, by their end; one without an end ends with the history.
func tookPoints(r *evidence.Run, outcome history.Type) plotter.XYs {
	var all plotter.XYs
	for s := range evidence.Each(r.History.Spans) {
		if s.Outcome == outcome && s.Op >= history.OpAcquire && s.Op <= history.OpRenew {
			end := min(s.Return, r.History.End)
			all = append(all, plotter.XY{X: end.Seconds(), Y: max(float64(end-s.Call)/1e6, 0.001)})
		}
	}
	return all
}

// thin keeps the median and the maximum of each column if there are too many points.
func thin(all plotter.XYs, end time.Duration) plotter.XYs {
	if len(all) <= maxPoints {
		return all
	}
	bins := make([]plotter.XYs, plotBins)
	for _, xy := range all {
		b := min(max(int(xy.X/max(end.Seconds(), 1e-9)*plotBins), 0), plotBins-1)
		bins[b] = append(bins[b], xy)
	}
	var kept plotter.XYs
	for _, b := range bins {
		if len(b) == 0 {
			continue
		}
		slices.SortFunc(b, func(a, c plotter.XY) int { return cmp.Compare(a.Y, c.Y) })
		kept = append(kept, b[len(b)/2], b[len(b)-1])
	}
	return kept
}

// ratePlot shows the rate of grants.
func ratePlot(r *evidence.Run) (*plot.Plot, vg.Length, error) {
	p := newPlot(r, "Grants per second (gray: faults)", "grants per second")
	bins := min(max(len(r.Holds)/10, 4), 100) // of ten grants or more, or one grant more is a peak
	width := max(r.History.End, time.Millisecond) / time.Duration(bins)
	n := make([]float64, bins)
	for i := range r.Holds {
		n[min(max(int(r.Holds[i].From/width), 0), bins-1)]++
	}
	var line plotter.XYs
	for i, c := range n {
		rate := c / width.Seconds()
		line = append(line, plotter.XY{X: (width * time.Duration(i)).Seconds(), Y: rate},
			plotter.XY{X: (width * time.Duration(i+1)).Seconds(), Y: rate})
	}
	l, err := plotter.NewLine(line)
	if err != nil {
		return nil, 0, fmt.Errorf("plotting the grant rate: %w", err)
	}
	l.Color, l.Width = rgb(0x0072b2), vg.Points(1.4)
	l.FillColor = translucent(0x0072b2, 40)
	p.Add(l)
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.1, 1)
	return p, plotHeight + faultBands{r}.height(), nil
}

// framed adds a margin around a plot, which gonum draws up to the edge.
func framed(c vg.CanvasSizer) draw.Canvas {
	return draw.Crop(draw.New(c), vg.Points(12), -vg.Points(16), vg.Points(10), -vg.Points(10))
}

// Plot is a row of the table of plots.
type Plot struct {
	Name string // of the file, without its extension
	make func(r *evidence.Run) (*plot.Plot, vg.Length, error)
}

// Plots is the table of plots.
func Plots() []Plot {
	return []Plot{{"overlap", overlapPlot}, {"latency", latencyPlot}, {"rate", ratePlot}}
}

// Write draws the plot as "svg" or "png".
func (s Plot) Write(r *evidence.Run, kind string, w io.Writer) error {
	p, height, err := s.make(r)
	if err != nil {
		return err
	}
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	} = vgsvg.New(plotWidth, height)
	if kind == "png" {
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(plotWidth, height), vgimg.UseDPI(144))}
	}
	p.Draw(framed(c))
	var b bytes.Buffer
	if _, err = c.WriteTo(&b); err != nil {
		return err
	}
	text := b.Bytes()
	if kind == "svg" { // other systems have fonts of the same widths, by other names
		text = bytes.ReplaceAll(text, []byte("font-family:Liberation Sans;"),
			[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	}
	_, err = w.Write(text)
	return err
}

// OverlapSVG writes the plot of overlapping holds as SVG.
func OverlapSVG(r *evidence.Run, w io.Writer) error { return Plots()[0].Write(r, "svg", w) }

// OverlapPNG writes the plot of overlapping holds as PNG.
func OverlapPNG(r *evidence.Run, w io.Writer) error { return Plots()[0].Write(r, "png", w) }

// WritePlots writes every plot as kind ("svg" or "png") into the directory dir,
// which it creates if necessary, and returns the paths.
func WritePlots(r *evidence.Run, kind, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("writing plots of %s: %w", r.Title(), err)
	}
	var paths []string
	for _, spec := range Plots() {
		var b bytes.Buffer
		path := filepath.Join(dir, spec.Name+"."+kind)
		err := spec.Write(r, kind, &b)
		if err == nil {
			err = os.WriteFile(path, b.Bytes(), 0o600)
		}
		if err != nil {
			return paths, fmt.Errorf("writing the %s plot of %s: %w", spec.Name, r.Title(), err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
