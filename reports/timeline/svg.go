package timeline

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Palette is the color of a client: from Okabe and Ito (2008), which color-blind readers can distinguish, without its
// reds, because red means overlap. Bars also have labels and patterns.
func Palette(i int) string {
	colors := [...]string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8d6e3f", "#6a5acd", "#7f8c2d"}
	if i < 0 {
		return "#8a94a0"
	}
	return colors[i%len(colors)]
}

// Ink is the color of text on a color of the palette, dark or white.
func Ink(i int) string {
	switch i % 8 {
	case 0, 2, 5, 6:
		return "#ffffff"
	}
	return "#10202c"
}

// drawing collects the elements of one SVG. It maps times to positions. The script
// of the page draws the same elements for other windows.
type drawing struct {
	b      strings.Builder
	Window evidence.Interval
	left   float64 // position of window.from
	right  float64 // position of window.until
	height float64
}

// x is the position of t, kept inside the drawing.
func (d *drawing) x(t time.Duration) float64 {
	t = min(max(t, d.Window.From), d.Window.Until)
	if d.Window.Length() <= 0 {
		return d.left
	}
	return d.left + (d.right-d.left)*float64(t-d.Window.From)/float64(d.Window.Length())
}

// width is the width of an interval in the drawing.
func (d *drawing) width(from, until time.Duration) float64 { return d.x(until) - d.x(from) }

// raw writes markup without untrusted text.
func (d *drawing) raw(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// bar is a rectangle over an interval. The tip is its tooltip; attrs is trusted
// markup.
func (d *drawing) bar(w evidence.Interval, y, h float64, tip, attrs string) {
	x := d.x(w.From)
	d.raw(`<rect %s x="%.1f" y="%.1f" width="%.1f" height="%.1f">%s</rect>`, attrs, x, y, max(d.x(w.Until)-x, 0.8), h,
		title(tip))
}

// line is a vertical line at a time.
func (d *drawing) line(t time.Duration, y1, y2 float64, attrs string) {
	d.raw(`<line %s x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, attrs, d.x(t), d.x(t), y1, y2)
}

// level is a horizontal line over an interval.
func (d *drawing) level(w evidence.Interval, y float64, tip, attrs string) {
	d.raw(`<line %s x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f">%s</line>`, attrs, d.x(w.From), d.x(w.Until), y, y, title(tip))
}

// mark is a small shape at a time, if that is in the window; shape is markup around the origin.
func (d *drawing) mark(t time.Duration, y float64, tip, shape string) {
	if d.Window.Has(t) {
		d.raw(`<g transform="translate(%.1f %.1f)">%s%s</g>`, d.x(t), y, shape, title(tip))
	}
}

// label is text at a time, moved dx to the right.
func (d *drawing) label(t time.Duration, dx, y float64, text, attrs string) {
	d.text(d.x(t)+dx, y, text, attrs)
}

// tick is the text of a tick of the axis, inside of the picture.
func (d *drawing) tick(at time.Duration, y float64, step time.Duration) {
	d.text(min(d.x(at), pictureWidth-24), y, format.Tick(at, step), `class="axis"`)
}

// text is text at a fixed position.
func (d *drawing) text(x, y float64, text, attrs string) {
	d.raw(`<text x="%.1f" y="%.1f" %s>%s</text>`, x, y, attrs, Escape(text))
}

// labelBar writes the first of texts that fits into a bar, if one does, clear of the markers at both ends of it.
func (d *drawing) labelBar(w evidence.Interval, y float64, fill string, texts ...string) {
	d.labelParts([]evidence.Interval{w}, y, fill, texts...)
}

// labelParts writes the first of texts that fits between two markers of a bar, if one does.
func (d *drawing) labelParts(parts []evidence.Interval, y float64, fill string, texts ...string) {
	for _, text := range texts {
		for _, w := range parts {
			if textWidth(text)+2*labelMargin <= d.width(w.From, w.Until) {
				d.label(max(w.From, d.Window.From), labelMargin, y, text, `class="in" fill="`+fill+`"`)
				return
			}
		}
	}
}

// labelMargin is the distance of a label from the ends of its bar: a marker there has a halo of 9 px to either side.
const labelMargin = 10

// textWidth is an upper estimate of the width of text in 11 px.
func textWidth(s string) float64 { return 6.1 * float64(len([]rune(s))) }

// title is the tooltip of an element: plain text, so it has no backquotes around
// names.
func title(tip string) string {
	if tip == "" {
		return ""
	}
	return "<title>" + Escape(strings.ReplaceAll(tip, "`", "")) + "</title>"
}

// Escape makes untrusted text safe in HTML and SVG.
func Escape(s string) string { return html.EscapeString(format.Line(s)) }

// done returns the drawing as markup: every text in it went through escape.
func (d *drawing) done(width float64, label, class string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="%s" viewBox="0 0 %.0f %.0f" `+
		`role="img" aria-label="%s">%s</svg>`, class, width, d.height, Escape(label), d.b.String()))
}

// ticks are round times across a window, about n of them.
func ticks(w evidence.Interval, n int) []time.Duration {
	if w.Length() <= 0 || n <= 0 {
		return nil
	}
	step := time.Duration(1)
	for _, f := range []time.Duration{2, 5, 10} {
		for s := f; s > 0 && s/10 <= w.Length(); s *= 10 {
			if w.Length()/s <= time.Duration(n) && (step == 1 || s < step) {
				step = s
			}
		}
	}
	var all []time.Duration
	for t := (w.From + step - 1) / step * step; t >= w.From && t <= w.Until; t += step { // t < w.from: an overflow
		all = append(all, t)
	}
	return all
}
