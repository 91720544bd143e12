package reports

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

func TestMissedFaultIsShown(t *testing.T) {
	s := stallRun()
	s.fault(5400, "kill", history.FaultValue{ID: 2, Phase: history.Missed, Target: "master",
		Detail: "step 2 (when promoted: kill master): the run was over first"})
	s.number()
	r := s.load(t)
	out := render(t, r, "html")
	row := regexp.MustCompile(`<b>kill</b>.*✕ never injected.*the run was over first`).FindString(out)
	if row == "" {
		t.Error("the table of faults does not say that one was never injected, and why")
	}
	for _, format := range []string{"html", "text", "markdown"} {
		got := strings.Join(strings.Fields(render(t, r, format)), " ")
		if want := "1 of 2 faults took effect, 1 never injected"; !strings.Contains(got, want) {
			t.Errorf("%s does not say %q", format, want)
		}
	}
	if want := (faultTally{Injected: 1, Effective: 1, Missed: 1}); r.tally() != want {
		t.Errorf("tally %+v, want %+v", r.tally(), want)
	}
}

func TestNotApplicableIsOneLine(t *testing.T) {
	s := safeRun()
	add := func(p checker.Property) {
		s.j.Results = append(s.j.Results, checker.Result{Property: p, Outcome: checker.NotApplicable, Summary: "none of it"})
	}
	add(checker.Permits)
	add(checker.Order)
	s.m.Expect["order"] = "holds" // expected, but not applicable
	out := render(t, s.load(t), "html")
	if want := `Not applicable: <span title="left out">linearizable</span>, <span title="none of it">permits</span>.`; !strings.
		Contains(out, want) {
		t.Errorf("the page lacks %s", want)
	}
	if strings.Contains(out, "<b>permits</b>") || !strings.Contains(out, "<b>order</b>") {
		t.Error("a row for what was not expected, or none for what was")
	}
}

func TestNoEmptyTables(t *testing.T) {
	runs := allRuns()
	bare := newSynth("bare", "orders", 0, idleRun().m.Topology, 1)
	empty := regexp.MustCompile(`<tbody>\s*</tbody>`)
	for _, s := range append(runs, bare) {
		out := render(t, s.load(t), "html")
		if at := empty.FindStringIndex(out); at != nil {
			t.Errorf("%s: an empty table: %s", s.m.Scenario, out[max(at[0]-300, 0):at[1]])
		}
		if len(s.load(t).faults) == 0 && !strings.Contains(out, "No fault was injected.") {
			t.Errorf("%s: the page does not say that there was no fault", s.m.Scenario)
		}
	}
}

func TestPageLinksOnlyWhatIsThere(t *testing.T) {
	r := failoverRun("orders").load(t)
	links := regexp.MustCompile(`class="file" href="([^"]*)"`)
	for _, written := range []bool{false, true} {
		if written {
			if err := WriteAll(r); err != nil {
				t.Fatal(err)
			}
		}
		all := links.FindAllStringSubmatch(render(t, r, "html"), -1)
		for _, link := range all {
			if !r.Dir.Has(link[1]) {
				t.Errorf("the page links %s, which is not there", link[1])
			}
		}
		if hasSVG := strings.Contains(render(t, r, "html"), `href="overlap.svg"`); hasSVG != written || len(all) == 0 {
			t.Errorf("plots written: %v; linked: %v, of %d links", written, hasSVG, len(all))
		}
	}
}

func TestTooltipsArePlain(t *testing.T) {
	marked := regexp.MustCompile("<title>[^<]*`[^<]*</title>")
	for _, s := range allRuns() {
		if found := marked.FindString(render(t, s.load(t), "html")); found != "" {
			t.Errorf("%s: %s", s.m.Scenario, found)
		}
	}
}

func TestSamplingGaps(t *testing.T) {
	at := func(node string, times ...float64) (all []history.Sample) {
		for _, n := range times {
			all = append(all, history.Sample{Node: node, Time: ms(n), Up: true})
		}
		return all
	}
	kill := []injection{{name: "kill", inject: ms(1000), effects: []history.Fault{{Time: ms(1010)}}}}
	for _, c := range []struct {
		name    string
		samples []history.Sample
		faults  []injection
		want    *samplingGaps
	}{
		{"no samples", nil, kill, nil},
		{"one sample is no gap", at("n1", 5), kill, nil},
		{"no fault", at("n1", 0, 8, 16, 50), nil, &samplingGaps{Median: ms(8), Largest: ms(34), Node: "n1"}},
		{"wide, but far from the fault", at("n1", 0, 500, 980, 988, 996), kill,
			&samplingGaps{Median: ms(480), Largest: ms(500), Node: "n1", NearFaults: ms(480)}},
		{"wide across the fault", at("n1", 0, 8, 16, 990, 1050), kill,
			&samplingGaps{Median: ms(60), Largest: ms(974), Node: "n1", NearFaults: ms(974)}},
		{"long after the fault", at("n1", 1112, 2000), kill, &samplingGaps{Median: ms(888), Largest: ms(888), Node: "n1"}},
		{"gaps are per node", append(at("n1", 980, 988), at("n2", 900, 1020)...), kill,
			&samplingGaps{Median: ms(120), Largest: ms(120), Node: "n2", NearFaults: ms(120)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWitness(c.samples, nil)
			if diff := cmp.Diff(c.want, measureGaps(&w, c.faults)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWideGapIsReported(t *testing.T) {
	s := failoverRun("orders")
	warning := regexp.MustCompile(`class="missing">Each node was sampled every 20 ms .* 100 ms within 100 ms of a fault\. That is more`)
	if out := render(t, s.load(t), "html"); warning.MatchString(out) || !strings.Contains(out, `class="note">Each node was sampled`) {
		t.Error("gaps of 20 ms: a warning, or no note")
	}
	var kept []history.Sample
	for _, smp := range s.samples {
		if smp.Node != "n2" || smp.Time < ms(1400) || smp.Time >= ms(1480) {
			kept = append(kept, smp)
		}
	}
	s.samples = kept
	r := s.load(t)
	if !warning.MatchString(render(t, r, "html")) {
		t.Errorf("no warning about a gap of %v near a fault", r.sampling.NearFaults)
	}
	if !strings.Contains(render(t, r, "text"), "not sampled for 100 ms") {
		t.Error("the text does not report the gap")
	}
}

// TestFaultLabelBesideItsBar: a name that fits neither into its bar nor right of it ends left of the whole bar, also of
// the part before the effect.
func TestFaultLabelBesideItsBar(t *testing.T) {
	tl := &timeline{d: &drawing{window: interval{0, ms(1000)}, left: axisLeft, right: axisRight}}
	tl.faultLabel(interval{ms(960), ms(1000)}, []history.Fault{{Time: ms(990)}}, []string{"jitter · client 0"})
	want := fmt.Sprintf(`<text x="%.1f"`, tl.d.x(ms(960))-6)
	if got := tl.d.b.String(); !strings.Contains(got, want) || !strings.Contains(got, "jitter") {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOverlapLabels(t *testing.T) {
	style := plot.New().X.Tick.Label
	limit := area{x1: 0, x2: 400}
	w := style.Width("401 ms")
	for _, c := range []struct {
		name string
		bars []area
		want []string
	}{
		{"inside", []area{{x1: 10, x2: 100}}, []string{"inside"}},
		{"right of a thin one", []area{{x1: 10, x2: 12}}, []string{"right"}},
		{"left at the edge", []area{{x1: 390, x2: 392}}, []string{"left"}},
		{"beside a neighbor", []area{{x1: 100, x2: 200}, {x1: 201, x2: 203}}, []string{"inside", "right"}},
		{"two thin ones", []area{{x1: 100, x2: 102}, {x1: 103, x2: 105}}, []string{"left", "right"}},
		{"inside another", []area{{x1: 100, x2: 300}, {x1: 120, x2: 280}}, []string{"inside", "none"}},
		{"no room", []area{{x1: 0, x2: 150}, {x1: 152, x2: 154}, {x1: 156, x2: 400}}, []string{"inside", "none", "inside"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts := make([]string, len(c.bars))
			for i := range texts {
				texts[i] = "401 ms"
			}
			var got []string
			for i, a := range labelAreas(c.bars, texts, style, limit) {
				got = append(got, where(a, c.bars[i], w))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func where(label, bar area, w vg.Length) string {
	switch {
	case label == area{}:
		return "none"
	case label.x1 >= bar.x1 && label.x2 <= bar.x2:
		return "inside"
	case label.x1 >= bar.x2 && label.x2-label.x1 >= w-0.01:
		return "right"
	case label.x2 <= bar.x1:
		return "left"
	}
	return "on the edge"
}

func TestPromised(t *testing.T) {
	held := func(to float64, end checker.HoldEnd) hold {
		return hold{checker.Hold{End: end, Promises: []checker.Promise{{From: ms(1), Until: ms(100)}}}, ms(to)}
	}
	for _, c := range []struct {
		name  string
		h     hold
		until time.Duration
		whole bool
	}{
		{"released early", held(40, checker.Released), ms(40), false},
		{"released late", held(140, checker.Released), ms(100), true},
		{"still held: valid beyond the end", held(50, checker.StillHeld), ms(100), true},
		{"no validity", hold{checker.Hold{End: checker.Released}, ms(50)}, 0, true},
	} {
		if until, whole := c.h.promised(); until != c.until || whole != c.whole {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, until, whole, c.until, c.whole)
		}
	}
}

// TestTimelineOnFirstPrintedPage: the first printed page has the whole timeline, and what is folded on a screen is
// printed, but for the list of where the numbers are from.
func TestTimelineOnFirstPrintedPage(t *testing.T) {
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("SKIPPED: no pdftotext on the PATH (Debian, Ubuntu: apt-get install poppler-utils)")
	}
	s := failoverRun("orders")
	s.fault(7000, history.NodePromoted, history.FaultValue{Phase: history.Noted, Target: "n2", Detail: "a replica took over"})
	s.number()
	r := s.load(t)
	if err := WriteAll(r); err != nil {
		t.Fatal(err)
	}
	pdf := filepath.Join(t.TempDir(), "page.pdf")
	printing := browser(t, "--print-to-pdf="+pdf, "file://"+r.Dir.File(rundir.ReportFile))
	if output, err := printing.CombinedOutput(); err != nil {
		t.Fatalf("printing the page: %v\n%s", err, output)
	}
	printed := func(args ...string) []byte {
		text, err := exec.Command("pdftotext", append(args, "-layout", pdf, "-")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if all := printed(); !bytes.Contains(all, []byte("a replica took over")) || bytes.Contains(all, []byte("Where these numbers")) {
		t.Errorf("printed:\n%s", all)
	}
	text := printed("-f", "1", "-l", "1")
	for _, want := range []string{"UNSAFE", "CLIENTS", "OVERLAP", "learned of the loss"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the first page lacks %q:\n%s", want, text)
		}
	}
	if info, err := os.Stat(pdf); err != nil || info.Size() == 0 {
		t.Errorf("%v", err)
	}
}
