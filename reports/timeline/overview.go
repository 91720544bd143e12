package timeline

import (
	"fmt"
	"html/template"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// overviewBins is the number of columns for the rate of grants.
const overviewBins = 240

// Overview draws the whole run: faults, grants, violations, and a frame around
// the part that the timeline shows.
func Overview(r *evidence.Run, shown evidence.Interval) template.HTML {
	d := &drawing{Window: evidence.Interval{From: 0, Until: max(r.History.End, time.Millisecond)}, left: axisLeft,
		right: axisRight}
	y := 8.0
	y = overviewFaults(r, d, y)
	y = overviewGrants(r, d, y)
	y = overviewViolations(r, d, y)
	frame := evidence.Interval{From: max(shown.From, 0), Until: min(shown.Until, d.Window.Until)}
	d.bar(frame, 2, y-2, fmt.Sprintf("the timeline above: %s to %s", format.Instant(frame.From),
		format.Instant(frame.Until)), `class="frame" rx="3"`)
	all := ticks(d.Window, 12)
	for _, t := range all {
		d.tick(t, y+16, all[min(1, len(all)-1)]-all[0])
	}
	d.height = y + 24
	return d.done(pictureWidth, "The whole run", "overview")
}

func overviewFaults(r *evidence.Run, d *drawing, y float64) float64 {
	if len(r.Faults) == 0 {
		return y
	}
	d.text(0, y+13, "FAULTS", `class="group"`)
	const rows = 6
	free := [rows]time.Duration{}
	used := 0
	for f := range evidence.Each(r.Faults) {
		w := evidence.Interval{From: f.Inject, Until: f.End(r.History.End)}
		row := rows - 1
		for k := range free {
			if free[k] <= w.From {
				row = k
				break
			}
		}
		free[row] = max(free[row], w.Until)
		used = max(used, row+1)
		top := y + 13*float64(row)
		tip := fmt.Sprintf("%s on %s from %s", f.Name, evidence.TargetName(f.Target), format.Instant(f.Inject))
		d.bar(w, top+2, 10, tip, `class="fault"`)
		for _, e := range f.Effects {
			d.mark(e.Time, top+7, "took effect at "+format.Instant(e.Time), `<path d="M0-5 3 0 0 5-3 0z" class="effect"/>`)
		}
	}
	return y + max(13*float64(used), 18) + 6
}

func overviewGrants(r *evidence.Run, d *drawing, y float64) float64 {
	const tall = 44
	d.text(0, y+13, "GRANTS", `class="group"`)
	bins := make([]int, overviewBins)
	most := 0
	for i := range r.Holds {
		b := binOf(r.Holds[i].From, d.Window.Until)
		bins[b]++
		most = max(most, bins[b])
	}
	step := d.Window.Until / overviewBins
	for i, n := range bins {
		if n == 0 {
			continue
		}
		h := tall * float64(n) / float64(most)
		w := evidence.Interval{From: step * time.Duration(i), Until: step * time.Duration(i+1)}
		d.bar(w, y+tall-h, h, fmt.Sprintf("%s between %s and %s", format.Count(n, "grant"), format.Instant(w.From),
			format.Instant(w.Until)), `class="grant"`)
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

func overviewViolations(r *evidence.Run, d *drawing, y float64) float64 {
	d.text(0, y+13, "VIOLATIONS", `class="group"`)
	n := -1
	seen := map[evidence.Interval]bool{}
	for res, v := range r.Violations() {
		n++
		w := r.During(v)
		if !evidence.IsDrawn(res) || seen[w] {
			continue
		}
		seen[w] = true
		for d.width(w.From, w.Until) < 3 && w.Until < d.Window.Until {
			w.Until += d.Window.Length()/500 + 1
		}
		d.bar(w, y+3, 12, string(res.Property)+": "+v.Text, fmt.Sprintf(`class="red" data-v="%d"`, n))
	}
	if len(seen) == 0 && r.Judged {
		d.text(axisLeft+8, y+13, "none", `class="good"`)
	}
	return y + 20
}
