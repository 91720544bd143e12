package reports

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/reports/page"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// maxPlotBytes is how large a plot may be, at any length of the run.
const maxPlotBytes = 1_000_000

// scaleSynth is a run of 1,000 clients with 100,000 holds of 20 keys, of which one in five hundred outlives its lease.
func scaleSynth(seed uint64) *synth {
	const clients, holds, keys = 1000, 100_000, 20
	chance := rand.New(rand.NewPCG(seed, 0))
	s := newSynth("scale", "", clients, failoverRun("").m.Topology, 3)
	free := make([]float64, keys) // when the lock of a key is free again
	tokens, value := make([]uint64, keys), make([]int64, keys)
	idle := make([]float64, clients) // when a client has nothing to do
	for i := range holds {
		k := slices.Index(free, slices.Min(free))
		c := chance.IntN(clients)
		for idle[c] > free[k] {
			c = (c + 1) % clients
		}
		s.key = fmt.Sprintf("orders-%02d", k)
		from := free[k] + 0.05 + chance.Float64()
		held := 0.5 + 5*chance.Float64()
		free[k] = from + held + 0.4
		if chance.IntN(500) == 0 {
			held += 200 // paused: the lease of 100 ms ends first
			free[k] = from + 100
		}
		tokens[k]++
		owner, p := fmt.Sprintf("owner-%06d", i), history.Process(c)
		s.hold(p, owner, tokens[k], holdTimes{max(idle[c], from-20*chance.Float64()), from, from + held, 100})
		s.touch(from+held-0.01, p, owner, tokens[k], history.TouchValue{Read: value[k], Found: value[k], MaxSeen: tokens[k]})
		value[k]++
		idle[c] = from + held + 1
	}
	for i := range 30 {
		at := 500 * float64(i+1)
		f := history.FaultValue{ID: i + 1, Phase: history.Injected, Target: fmt.Sprintf("n%d", i%3+1)}
		s.fault(at, "pause-node", f)
		f.Phase, f.Detail = history.TookEffect, "stopped"
		s.fault(at+1, "pause-node", f)
		f.Phase = history.Healed
		s.fault(at+200, "pause-node", f)
	}
	s.number()
	return s
}

// TestScale: the page of 1,000 clients and 100,000 holds has at most 5 MB, the picture of the holds at most 1 MB, and
// in a browser no table is longer than the window. It logs how long everything takes; docs/contributors/measurements.md
// has the result.
func TestScale(t *testing.T) {
	race.SkipLong(t, "it draws 100,000 holds")
	s := scaleSynth(7)
	h, err := history.Build(s.events)
	if err != nil {
		t.Fatal(err)
	}
	h.Clients = s.m.Clients
	s.j = checker.Judge(h, checker.Options{})
	if s.j.Verdict != checker.Unsafe || s.j.Result(checker.Exclusion).Total < 100 {
		t.Fatalf("verdict %s, want unsafe with a hundred overlaps: %s", s.j.Verdict, s.j.Sentence)
	}
	dir := s.load(t).Dir
	began := time.Now()
	r, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	loaded := time.Since(began)
	began = time.Now()
	if err := WriteAll(r); err != nil {
		t.Fatal(err)
	}
	if clients, holds := len(r.PerClient()), len(r.Holds); clients != 1000 || holds != 100_000 {
		t.Fatalf("%d clients, %d holds", clients, holds)
	}
	t.Logf("%d events: loaded in %v, all reports written in %v", h.Events, loaded.Round(time.Millisecond),
		time.Since(began).Round(time.Millisecond))
	for name, limit := range map[string]int64{rundir.ReportFile: page.MaxBytes, "overlap.svg": maxPlotBytes,
		"latency.svg": maxPlotBytes, "rate.svg": maxPlotBytes} {
		n := size(t, dir.File(name))
		t.Logf("%s: %d bytes", name, n)
		if n > limit {
			t.Errorf("%s has %d bytes, want at most %d", name, n, limit)
		}
	}
	page := render(t, r, "html")
	data := regexp.MustCompile(`id="data">[^<]*`).FindString(page)
	t.Logf("%d bytes of data in the page", len(data))
	var seen struct {
		Paint, Ready, Whole, Violation, Tallest, Height float64
		Rows, Elements                                  int
		Found                                           string
	}
	d := browser.Start(t)
	d.Open(t, page, browser.Options{})
	d.Run(t, `
		const timed = async function (what) { const t = performance.now(); $(what).click(); await frame(); return performance.now() - t; };
		const out = {Paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
			Ready: performance.getEntriesByName('ready')[0].startTime, Found: $('#found').textContent};
		out.Whole = await timed('[data-do=whole]');
		out.Violation = await timed('[data-do=after]');
		out.Rows = document.querySelectorAll('#ops .rows [role=row]').length;
		out.Elements = document.querySelectorAll('svg.timeline *').length;
		out.Tallest = Math.max(...[...document.querySelectorAll('section')].map((e) => e.getBoundingClientRect().height));
		out.Height = document.documentElement.scrollHeight;
		return out;`, &seen)
	t.Logf("in the browser: %+v", seen)
	if seen.Found != "300,030 of 300,030 entries" || seen.Rows > 60 {
		t.Errorf("%s listed, %d rows in the document", seen.Found, seen.Rows)
	}
	if seen.Tallest > 2500 || seen.Height > 12_000 {
		t.Errorf("the tallest section has %.0f px, the page %.0f", seen.Tallest, seen.Height)
	}
}

// TestPlotOfManyHolds: a violation as long as the run has 50,000 holds in its window, which are drawn together.
func TestPlotOfManyHolds(t *testing.T) {
	r := bigRun(t)
	r.Judgement.Results[0].Violations[0].Start, r.Judgement.Results[0].Violations[0].End = 0, r.History.End
	if w := timeline.New(r).D.Window; w.Length() < r.History.End/2 {
		t.Fatalf("the window is %v long", w.Length())
	}
	for _, kind := range []string{"svg", "html"} {
		if n := len(render(t, r, kind)); n > page.MaxBytes || kind == "svg" && n > maxPlotBytes {
			t.Errorf("%s has %d bytes", kind, n)
		}
	}
}
