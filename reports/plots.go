package reports

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/lockchaos/lockchaos/history"
)

// Size of the plots.
const (
	plotWidth  = 22 * vg.Centimeter
	plotHeight = 9 * vg.Centimeter
)

// maxPoints is how many points a plot shows one by one; beyond it, each of
// plotBins columns shows its median and its greatest.
const (
	maxPoints = 4000
	plotBins  = 500
)

// newPlot is an empty plot over the time of the run.
func newPlot(r *Run, title, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "time since the run began, s", y
	for _, f := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		f.Font.Variant = "Sans"
		f.Color = rgb(0x10202c)
	}
	p.Title.Padding, p.Title.TextStyle.Font.Size = vg.Points(8), vg.Points(12)
	p.X.Min, p.X.Max = 0, max(r.History.End.Seconds(), 0.001)
	p.Legend.Top = true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = rgb(0xe9edf1), rgb(0xe9edf1)
	p.Add(grid, faultBands{r})
	return p
}

func rgb(c uint32) color.NRGBA {
	return color.NRGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255}
}

// clear is a colour with so much of it, 0 to 255.
func clear(c uint32, a uint8) color.NRGBA {
	n := rgb(c)
	n.A = a
	return n
}

// clientColour is the colour that the page gives a client.
func (r *Run) clientColour(client int) color.NRGBA {
	i, ok := r.colour[client]
	if !ok {
		i = client
	}
	var c uint32
	if _, err := fmt.Sscanf(palette(i), "#%06x", &c); err != nil {
		return rgb(0x8a94a0)
	}
	return rgb(c)
}

// faultBands shades the time of every fault, darker where several overlap, with
// a line where it bit.
type faultBands struct{ r *Run }

// Plot draws the bands over the whole height.
func (b faultBands) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for i := range b.r.faults {
		f := &b.r.faults[i]
		from, to := x(f.inject.Seconds()), x(f.end(b.r.History.End).Seconds())
		box(c, area{from, max(to, from+0.6), c.Min.Y, c.Max.Y}, clear(0x7d8a96, 40))
		for _, bite := range f.bites {
			at := x(bite.Time.Seconds())
			box(c, area{at, at + 0.8, c.Min.Y, c.Max.Y}, clear(0x10202c, 150))
		}
	}
}

// area is a rectangle of a canvas.
type area struct{ x1, x2, y1, y2 vg.Length }

// cut limits an area to what the plot shows along the time axis; false if that is nothing.
func (a area) cut(c draw.Canvas) (area, bool) {
	a.x1, a.x2 = max(a.x1, c.Min.X), min(a.x2, c.Max.X)
	return a, a.x2 >= a.x1
}

// corners are the four corners of an area, around it.
func (a area) corners() []vg.Point {
	return []vg.Point{{X: a.x1, Y: a.y1}, {X: a.x2, Y: a.y1}, {X: a.x2, Y: a.y2}, {X: a.x1, Y: a.y2}}
}

// box fills an area.
func box(c draw.Canvas, a area, fill color.Color) {
	if a, ok := a.cut(c); ok {
		c.FillPolygon(fill, a.corners())
	}
}

// outline strokes around an area. An end that is not its own is left open: the
// right one if it is not whole, and either where the plot ends before it, with
// an arrow to the right, where it goes on.
func outline(c draw.Canvas, a area, stroke color.Color, whole bool) {
	seen, ok := a.cut(c)
	if !ok {
		return
	}
	line := draw.LineStyle{Color: stroke, Width: vg.Points(0.8)}
	c.StrokeLine2(line, seen.x1, seen.y1, seen.x2, seen.y1)
	c.StrokeLine2(line, seen.x1, seen.y2, seen.x2, seen.y2)
	if seen.x1 == a.x1 {
		c.StrokeLine2(line, seen.x1, seen.y1, seen.x1, seen.y2)
	}
	switch {
	case seen.x2 < a.x2:
		mid, size := seen.y1+vg.Points(2), vg.Points(3) // beside the bar that the promise is for
		tip := vg.Point{X: seen.x2 + size, Y: mid}
		c.FillPolygon(stroke, []vg.Point{{X: seen.x2, Y: mid - size}, tip, {X: seen.x2, Y: mid + size}})
	case whole:
		c.StrokeLine2(line, seen.x2, seen.y1, seen.x2, seen.y2)
	}
}

// latencyPlot shows how long acquires waited and round trips took, over time.
func latencyPlot(r *Run) (*plot.Plot, error) {
	p := newPlot(r, "How long operations took (grey: faults)", "milliseconds")
	series := []struct {
		name string
		ops  []history.Op
		look draw.GlyphStyle
	}{
		{"acquire: wait", []history.Op{history.OpAcquire, history.OpTry},
			draw.GlyphStyle{Color: rgb(0x0072b2), Radius: 2, Shape: draw.CircleGlyph{}}},
		{"release, renew: round trip", []history.Op{history.OpRelease, history.OpRenew},
			draw.GlyphStyle{Color: rgb(0xe69f00), Radius: 2.4, Shape: draw.PyramidGlyph{}}},
	}
	for _, s := range series {
		points := thin(tookPoints(r, s.ops), r.History.End)
		if len(points) == 0 {
			continue
		}
		sc, err := plotter.NewScatter(points)
		if err != nil {
			return nil, fmt.Errorf("plotting %s: %w", s.name, err)
		}
		sc.GlyphStyle = s.look
		p.Add(sc)
		p.Legend.Add(s.name, sc)
	}
	p.Y.Min = 0
	p.Y.Max = max(p.Y.Max*1.4, 1) // room for the legend
	return p, nil
}

func tookPoints(r *Run, ops []history.Op) plotter.XYs {
	var all plotter.XYs
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		if s.Outcome == history.OK && slices.Contains(ops, s.Op) {
			all = append(all, plotter.XY{X: s.Return.Seconds(), Y: float64(s.Return-s.Call) / 1e6})
		}
	}
	return all
}

// thin keeps the median and the greatest of each column if there are too many points.
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
		slices.SortFunc(b, func(a, c plotter.XY) int { return compare(a.Y, c.Y) })
		kept = append(kept, b[len(b)/2], b[len(b)-1])
	}
	return kept
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ratePlot shows how many grants there were in a second.
func ratePlot(r *Run) (*plot.Plot, error) {
	p := newPlot(r, "Grants per second (grey: faults)", "grants per second")
	const bins = 100
	width := max(r.History.End, time.Millisecond) / bins
	n := make([]float64, bins)
	for i := range r.holds {
		n[min(max(int(r.holds[i].From/width), 0), bins-1)]++
	}
	var line plotter.XYs
	for i, c := range n {
		rate := c / width.Seconds()
		line = append(line, plotter.XY{X: (width * time.Duration(i)).Seconds(), Y: rate},
			plotter.XY{X: (width * time.Duration(i+1)).Seconds(), Y: rate})
	}
	l, err := plotter.NewLine(line)
	if err != nil {
		return nil, fmt.Errorf("plotting the rate of grants: %w", err)
	}
	l.Color, l.Width = rgb(0x0072b2), vg.Points(1.4)
	l.FillColor = clear(0x0072b2, 40)
	p.Add(l)
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.1, 1)
	return p, nil
}

// framed leaves some air around a plot, which gonum draws up to the edge.
func framed(c vg.CanvasSizer) draw.Canvas {
	return draw.Crop(draw.New(c), vg.Points(12), -vg.Points(16), vg.Points(10), -vg.Points(10))
}

// picture is a row of the table of plots.
type picture struct {
	name string // of the file, without its ending
	make func(r *Run) (*plot.Plot, vg.Length, error)
}

func pictures() []picture {
	return []picture{{"overlap", overlapPicture}, {"latency", latencyPicture}, {"rate", ratePicture}}
}

func overlapPicture(r *Run) (*plot.Plot, vg.Length, error) {
	p, h := overlapPlot(r)
	return p, h, nil
}

func latencyPicture(r *Run) (*plot.Plot, vg.Length, error) {
	p, err := latencyPlot(r)
	return p, plotHeight, err
}

func ratePicture(r *Run) (*plot.Plot, vg.Length, error) {
	p, err := ratePlot(r)
	return p, plotHeight, err
}

// write draws the plot as "svg" or "png".
func (pic picture) write(r *Run, format string, w io.Writer) error {
	p, h, err := pic.make(r)
	if err != nil {
		return err
	}
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	} = vgsvg.New(plotWidth, h)
	if format == "png" {
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(plotWidth, h), vgimg.UseDPI(144))}
	}
	p.Draw(framed(c))
	_, err = c.WriteTo(w)
	return err
}

func overlapSVG(r *Run, w io.Writer) error { return pictures()[0].write(r, "svg", w) }
func overlapPNG(r *Run, w io.Writer) error { return pictures()[0].write(r, "png", w) }

// WritePlots writes every plot as format ("svg" or "png") into the folder dir,
// which it makes if need be, and returns the paths.
func WritePlots(r *Run, format, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("writing plots of %s: %w", r.title(), err)
	}
	var paths []string
	for _, pic := range pictures() {
		var b bytes.Buffer
		path := filepath.Join(dir, pic.name+"."+format)
		err := pic.write(r, format, &b)
		if err == nil {
			err = os.WriteFile(path, b.Bytes(), 0o644)
		}
		if err != nil {
			return paths, fmt.Errorf("writing the %s plot of %s: %w", pic.name, r.title(), err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
