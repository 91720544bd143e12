package reports

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/reports/evidence"
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
	if want := (evidence.FaultTally{Injected: 1, Effective: 1, Missed: 1}); r.Tally() != want {
		t.Errorf("tally %+v, want %+v", r.Tally(), want)
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
		if len(s.load(t).Faults) == 0 && !strings.Contains(out, "No fault was injected.") {
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

func TestWideGapIsReported(t *testing.T) {
	s := failoverRun("orders")
	warning := regexp.MustCompile(`class="missing">Each node was sampled every 20 ms .* 100 ms within 100 ms of a fault\. That is more`)
	if out := render(t, s.load(t), "html"); warning.MatchString(out) || !strings.Contains(out,
		`class="note">Each node was sampled`) {
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
		t.Errorf("no warning about a gap of %v near a fault", r.Sampling.NearFaults)
	}
	if !strings.Contains(render(t, r, "text"), "not sampled for 100 ms") {
		t.Error("the text does not report the gap")
	}
}

func TestPromised(t *testing.T) {
	held := func(to float64, end checker.HoldEnd) evidence.Hold {
		return evidence.Hold{Hold: checker.Hold{End: end, Promises: []checker.Promise{{From: ms(1), Until: ms(100)}}},
			To: ms(to)}
	}
	for _, c := range []struct {
		name  string
		h     evidence.Hold
		until time.Duration
		whole bool
	}{
		{"released early", held(40, checker.Released), ms(40), false},
		{"released late", held(140, checker.Released), ms(100), true},
		{"still held: valid beyond the end", held(50, checker.StillHeld), ms(100), true},
		{"no validity", evidence.Hold{Hold: checker.Hold{End: checker.Released}, To: ms(50)}, 0, true},
	} {
		if until, whole := c.h.Promised(); until != c.until || whole != c.whole {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, until, whole, c.until, c.whole)
		}
	}
}

// TestTimelineOnFirstPrintedPage: the first printed page has the whole timeline, and folded parts are printed, but for
// the list of where the numbers are from.
func TestTimelineOnFirstPrintedPage(t *testing.T) {
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("SKIPPED: no pdftotext on the PATH (Debian, Ubuntu: apt-get install poppler-utils)")
	}
	s := failoverRun("orders")
	s.fault(7000, history.NodePromoted, history.FaultValue{Phase: history.Noted, Target: "n2",
		Detail: "a replica took over"})
	s.number()
	r := s.load(t)
	if err := WriteAll(r); err != nil {
		t.Fatal(err)
	}
	pdf := filepath.Join(t.TempDir(), "page.pdf")
	printing := browser.Command(t, "--print-to-pdf="+pdf, "file://"+r.Dir.File(rundir.ReportFile))
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
	if all := printed(); !bytes.Contains(all, []byte("a replica took over")) || bytes.Contains(all,
		[]byte("Where these numbers")) {
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

// TestTermsHaveDocs: the page links its terms to the docs, to headings that exist. Every property has one.
func TestTermsHaveDocs(t *testing.T) {
	links := regexp.MustCompile(`href="https://[^"]*/main/([^"#]*)#?([^"]*)"`).FindAllStringSubmatch(
		render(t, failoverRun("orders").load(t), "html"), -1)
	for _, c := range checker.Catalog() {
		links = append(links, []string{"", "docs/explanation/checkers.md", string(c.Name)})
	}
	for _, m := range links {
		text, err := os.ReadFile("../" + m[1])
		heading := regexp.MustCompile(`(?mi)^#+ ` + regexp.QuoteMeta(m[2]) + `$`)
		if err != nil || m[2] != "" && !heading.Match(text) {
			t.Errorf("%s has no heading %q: %v", m[1], m[2], err)
		}
	}
	if got, want := len(links), len(checker.Catalog())+len(failoverRun("orders").j.Results)+2; got != want {
		t.Errorf("%d links, want %d", got, want)
	}
}
