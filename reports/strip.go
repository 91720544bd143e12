package reports

import (
	"fmt"
	"html/template"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// stripBins is how many columns the whole run is counted in.
const stripBins = 240

// strip draws the whole run in one band: faults, grants per column, violations,
// and which part of it the picture shows.
func (r *Run) strip(shown window) template.HTML {
	d := &drawing{id: "s", win: window{0, max(r.History.End, time.Millisecond)}, left: sceneLeft, right: sceneRight}
	y := 8.0
	y = r.stripFaults(d, y)
	y = r.stripGrants(d, y)
	y = r.stripViolations(d, y)
	frame := window{max(shown.from, 0), min(shown.until, d.win.until)}
	d.bar(frame, 2, y-2, fmt.Sprintf("the picture above: %s to %s", format.Instant(frame.from), format.Instant(frame.until)),
		`class="frame" rx="3"`)
	all := ticks(d.win, 12)
	for _, t := range all {
		d.label(t, 0, y+16, tickLabel(t, all[min(1, len(all)-1)]-all[0]), `class="axis"`)
	}
	d.height = y + 24
	return d.done(sceneWidth, "The whole run", "strip")
}

func (r *Run) stripFaults(d *drawing, y float64) float64 {
	if len(r.faults) == 0 {
		return y
	}
	d.text(0, y+13, "FAULTS", `class="group"`)
	const lanes = 6
	free := [lanes]time.Duration{}
	used := 0
	for i := range r.faults {
		f := &r.faults[i]
		w := window{f.inject, f.end(r.History.End)}
		lane := lanes - 1
		for k := range free {
			if free[k] <= w.from {
				lane = k
				break
			}
		}
		free[lane] = max(free[lane], w.until)
		used = max(used, lane+1)
		top := y + 13*float64(lane)
		d.bar(w, top+2, 10, fmt.Sprintf("%s on %s from %s", f.name, targetName(f.target), format.Instant(f.inject)), `class="fault"`)
		for _, b := range f.bites {
			d.mark(b.Time, top+7, "bit at "+format.Instant(b.Time), `<path d="M0-5 3 0 0 5-3 0z" class="bite"/>`)
		}
	}
	return y + max(13*float64(used), 18) + 6
}

func (r *Run) stripGrants(d *drawing, y float64) float64 {
	const tall = 44
	d.text(0, y+13, "GRANTS", `class="group"`)
	bins := make([]int, stripBins)
	most := 0
	for i := range r.holds {
		b := binOf(r.holds[i].From, d.win.until)
		bins[b]++
		most = max(most, bins[b])
	}
	step := d.win.until / stripBins
	for i, n := range bins {
		if n == 0 {
			continue
		}
		h := tall * float64(n) / float64(most)
		w := window{step * time.Duration(i), step * time.Duration(i+1)}
		d.bar(w, y+tall-h, h, fmt.Sprintf("%s between %s and %s", format.Count(n, "grant"), format.Instant(w.from), format.Instant(w.until)),
			`class="grant"`)
	}
	d.text(0, y+28, fmt.Sprintf("up to %d in %s", most, format.Duration(step)), `class="sub"`)
	d.raw(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" class="free"/>`, sceneLeft, sceneRight, y+tall, y+tall)
	return y + tall + 8
}

func binOf(t, end time.Duration) int {
	if end <= 0 || t < 0 {
		return 0
	}
	return min(int(float64(t)/float64(end)*stripBins), stripBins-1)
}

func (r *Run) stripViolations(d *drawing, y float64) float64 {
	d.text(0, y+13, "VIOLATIONS", `class="group"`)
	n := 0
	seen := map[window]bool{}
	for _, res := range r.Judgement.Results {
		if res.Outcome != checker.Violated || res.Property == checker.Bite {
			continue
		}
		for _, v := range res.Violations {
			w := r.during(&v)
			if seen[w] {
				continue
			}
			seen[w] = true
			n++
			for d.width(w.from, w.until) < 3 && w.until < d.win.until {
				w.until += d.win.length()/500 + 1
			}
			d.bar(w, y+3, 12, string(res.Property)+": "+v.Text, `class="red"`)
		}
	}
	if n == 0 && r.Judged {
		d.text(sceneLeft, y+13, "none", `class="good"`)
	}
	return y + 20
}
