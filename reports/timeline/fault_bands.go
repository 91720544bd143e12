package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// faultBands shades every fault, darker where several overlap, with a line where it took effect, and names it above the
// data.
type faultBands struct{ r *evidence.Run }

// The names of faults, in rows above the data.
const (
	plotFaultRows  = 3
	faultRowHeight = vg.Length(10)
	faultNameGap   = vg.Length(6)
)

// height is the height of the rows of names.
func (b faultBands) height() vg.Length {
	return vg.Length(min(len(b.r.Faults), plotFaultRows)) * faultRowHeight
}

// Plot draws the bands over the whole height.
func (b faultBands) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	var names []faultName
	for f := range evidence.Each(b.r.Faults) {
		from, to := x(f.Inject.Seconds()), x(f.End(b.r.History.End).Seconds())
		band := area{from, max(to, from+0.6), c.Min.Y, c.Max.Y}
		fillArea(c, band, translucent(0x7d8a96, 40))
		for _, effect := range f.Effects {
			at := x(effect.Time.Seconds())
			fillArea(c, area{at, at + 0.8, c.Min.Y, c.Max.Y}, translucent(0x10202c, 150))
		}
		if shown, ok := band.clip(c); ok && from <= c.Max.X {
			names = append(names, faultName{text: f.Name + " · " + evidence.TargetName(f.Target), at: shown.x1})
		}
	}
	b.write(c, p.X.Tick.Label, names)
}

// write writes the names above the data, each over the beginning of its band, with a line to it.
func (b faultBands) write(c draw.Canvas, style draw.TextStyle, names []faultName) {
	style.Font.Size, style.Color, style.XAlign, style.YAlign = vg.Points(8), rgb(0x45525e), draw.XLeft, draw.YBottom
	line := draw.LineStyle{Color: translucent(0x7d8a96, 150), Width: vg.Points(0.6)}
	width := func(text string) vg.Length { return 1.1 * style.Width(text) } // browsers have wider fonts
	rest := placeFaultNames(names, width, area{x1: c.Min.X, x2: c.Max.X})
	for _, n := range names {
		if n.row < 0 {
			continue
		}
		y := c.Max.Y + vg.Length(n.row)*faultRowHeight
		c.StrokeLine2(line, n.at, c.Max.Y, n.at, y+faultRowHeight-2)
		c.FillText(style, vg.Point{X: n.x, Y: y + 2}, format.Line(n.text))
	}
	if rest != "" {
		style.XAlign = draw.XRight
		c.FillText(style, vg.Point{X: c.Max.X, Y: c.Max.Y + 2}, rest)
	}
}

// faultName is the name of a fault in a plot.
type faultName struct {
	text string
	at   vg.Length // beginning of the band
	x    vg.Length // beginning of the text
	row  int       // from the data upwards; -1: no room
}

// placeFaultNames finds a row for each name in which it covers no other one. What it returns says how many have no row;
// it belongs at the right end of the lowest one. "": all have a row.
func placeFaultNames(names []faultName, width func(string) vg.Length, limit area) (rest string) {
	slices.SortStableFunc(names, func(a, b faultName) int { return cmp.Compare(a.at, b.at) })
	place := func(reserved vg.Length) (hidden int) {
		var end [plotFaultRows]vg.Length
		for i := range end {
			end[i] = limit.x1 - faultNameGap
		}
		for n := range evidence.Each(names) {
			w := width(n.text)
			n.row = -1
			for row := range min(len(names), plotFaultRows) {
				right := limit.x2
				if row == 0 {
					right -= reserved
				}
				x := min(n.at+2, right-w) // a name at the right end begins before its band
				if x >= limit.x1 && x >= end[row]+faultNameGap {
					n.x, n.row, end[row] = x, row, x+w
					break
				}
			}
			if n.row < 0 {
				hidden++
			}
		}
		return hidden
	}
	hidden := place(0)
	if hidden == 0 {
		return ""
	}
	hidden = place(width(restOfFaults(len(names))) + faultNameGap)
	return restOfFaults(hidden)
}

func restOfFaults(n int) string { return fmt.Sprintf("and %s", format.Count(n, "more fault")) }
