package reports

import (
	"fmt"
	"html/template"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// overviewBins is the number of columns for the rate of grants.
const overviewBins = 240

// overview draws the whole run: faults, grants, violations, and a frame around
// the part that the timeline shows.
func (r *Run) overview(shown interval) template.HTML {
	d := &drawing{window: interval{0, max(r.History.End, time.Millisecond)}, left: axisLeft, right: axisRight}
	y := 8.0
	y = r.overviewFaults(d, y)
	y = r.overviewGrants(d, y)
	y = r.overviewViolations(d, y)
	frame := interval{max(shown.from, 0), min(shown.until, d.window.until)}
	d.bar(frame, 2, y-2, fmt.Sprintf("the timeline above: %s to %s", format.Instant(frame.from),
		format.Instant(frame.until)), `class="frame" rx="3"`)
	all := ticks(d.window, 12)
	for _, t := range all {
		d.label(t, 0, y+16, format.Tick(t, all[min(1, len(all)-1)]-all[0]), `class="axis"`)
	}
	d.height = y + 24
	return d.done(pictureWidth, "The whole run", "overview")
}

func (r *Run) overviewFaults(d *drawing, y float64) float64 {
	if len(r.faults) == 0 {
		return y
	}
	d.text(0, y+13, "FAULTS", `class="group"`)
	const rows = 6
	free := [rows]time.Duration{}
	used := 0
	for f := range each(r.faults) {
		w := interval{f.inject, f.end(r.History.End)}
		row := rows - 1
		for k := range free {
			if free[k] <= w.from {
				row = k
				break
			}
		}
		free[row] = max(free[row], w.until)
		used = max(used, row+1)
		top := y + 13*float64(row)
		tip := fmt.Sprintf("%s on %s from %s", f.name, targetName(f.target), format.Instant(f.inject))
		d.bar(w, top+2, 10, tip, `class="fault"`)
		for _, e := range f.effects {
			d.mark(e.Time, top+7, "took effect at "+format.Instant(e.Time), `<path d="M0-5 3 0 0 5-3 0z" class="effect"/>`)
		}
	}
	return y + max(13*float64(used), 18) + 6
}

func (r *Run) overviewGrants(d *drawing, y float64) float64 {
	const tall = 44
	d.text(0, y+13, "GRANTS", `class="group"`)
	bins := make([]int, overviewBins)
	most := 0
	for i := range r.holds {
		b := binOf(r.holds[i].From, d.window.until)
		bins[b]++
		most = max(most, bins[b])
	}
	step := d.window.until / overviewBins
	for i, n := range bins {
		if n == 0 {
			continue
		}
		h := tall * float64(n) / float64(most)
		w := interval{step * time.Duration(i), step * time.Duration(i+1)}
		d.bar(w, y+tall-h, h, fmt.Sprintf("%s between %s and %s", format.Count(n, "grant"), format.Instant(w.from),
			format.Instant(w.until)), `class="grant"`)
	}
	d.text(0, y+28, fmt.Sprintf("up to %s per %s", format.Number(most), format.Duration(step)), `class="sub"`)
	d.raw(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" class="free"/>`, axisLeft, axisRight, y+tall, y+tall)
	return y + tall + 8
}

func binOf(t, end time.Duration) int {
	if end <= 0 || t < 0 {
		return 0
	}
	return min(int(float64(t)/float64(end)*overviewBins), overviewBins-1)
}

func (r *Run) overviewViolations(d *drawing, y float64) float64 {
	d.text(0, y+13, "VIOLATIONS", `class="group"`)
	n := -1
	seen := map[interval]bool{}
	for res, v := range r.violations() {
		n++
		w := r.during(v)
		if !isDrawn(res) || seen[w] {
			continue
		}
		seen[w] = true
		for d.width(w.from, w.until) < 3 && w.until < d.window.until {
			w.until += d.window.length()/500 + 1
		}
		d.bar(w, y+3, 12, string(res.Property)+": "+v.Text, fmt.Sprintf(`class="red" data-v="%d"`, n))
	}
	if len(seen) == 0 && r.Judged {
		d.text(axisLeft+8, y+13, "none", `class="good"`)
	}
	return y + 20
}
