package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// runsDir is a directory with runs in several states, a suite, and a link to one of the runs.
func runsDir(t *testing.T) (dir string) {
	dir = filepath.Join(t.TempDir(), "chaos-runs")
	add := func(run, manifest, verdict string, files ...string) {
		write(t, filepath.Join(dir, run, "run.json"), manifest)
		if verdict != "" {
			write(t, filepath.Join(dir, run, "verdict.json"), verdict)
		}
		for _, name := range files {
			write(t, filepath.Join(dir, run, name), "page")
		}
	}
	add("failover/1", marshal(t, rundir.Manifest{State: rundir.Complete, Scenario: "failover", Lock: "redisson",
		Backend: "sim", Seed: 7, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}),
		marshal(t, rundir.Verdict{Judgement: checker.Judgement{
			Verdict: checker.Unsafe, Sentence: "two clients <b>held</b> it"}}), "report.html")
	add("contention/2", `{"state":"complete","scenario":"contention","lock":"reentrant","backend":"process","seed":8,
		"started":"2026-01-02T03:05:05Z"}`, `{"verdict":"safe","sentence":"3 holds"}`, "report.html")
	add("contention/3", `{"state":"running","scenario":"contention","lock":"reentrant","seed":9,
		"started":"2026-01-02T03:06:05Z"}`, "")
	add("contention/4", `{"state":"broken","failure":"no server","scenario":"contention","seed":10}`, "")
	add("torn/a #5", `{"state":`, "")
	add("torn/6", `{"state":"complete","scenario":"failover"}`, `{"verdict`)
	write(t, filepath.Join(dir, "night", "index.html"), "a suite")
	write(t, filepath.Join(dir, "running", suite.ProgressFile), "{}")
	add("torn/7", `{"scenario":"`+strings.Repeat("x", fileSize)+`"}`, "")
	if err := os.Symlink("failover/1", filepath.Join(dir, "latest")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func marshal(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows are the rows of a list of runs: verdict, scenario and link.
func rows(body string) (list []string) {
	row := regexp.MustCompile(`(?s)<tr><td.*?badge ([^"]*)".*?<a href="([^"]*)">([^<]*)</a>`)
	for _, m := range row.FindAllStringSubmatch(body, -1) {
		list = append(list, fmt.Sprint(m[1], " ", m[3], " ", m[2]))
	}
	return list
}

func ask(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+target, nil))
	return w
}

// TestRunsAreListed: a directory without a page shows its runs, the latest first, those without a verdict too, and a
// filter selects some of them.
func TestRunsAreListed(t *testing.T) {
	h := handler(t, runsDir(t))
	all := []string{
		"running contention ./contention/3/", "safe contention ./contention/2/report.html",
		"unsafe failover ./failover/1/report.html", "broken contention ./contention/4/",
		"unreadable failover ./torn/6/", "unreadable torn/7 ./torn/7/", "unreadable torn/a #5 ./torn/a%20%235/",
	}
	for _, c := range []struct {
		target string
		want   []string
	}{
		{"/", all},
		{"/?q=FAILover+redisson", all[2:3]},
		{"/?q=seed+8", all[1:2]},
		{"/?q=contention+seed+1", nil},
		{"/?q=SEED+10+no+server", all[3:4]},
		{"/?q=2026-01-02+03:06", all[:1]},
		{"/?verdict=broken", all[3:4]},
		{"/?q=failover&verdict=safe", nil},
		{"/?q=nothing", nil},
		{"/contention/", []string{
			"running contention ./3/", "safe contention ./2/report.html", "broken contention ./4/"}},
	} {
		w := ask(h, c.target)
		if got := rows(w.Body.String()); strings.Join(got, "\n") != strings.Join(c.want, "\n") || w.Code != 200 {
			t.Errorf("%s: %d\n%s\nwant\n%s", c.target, w.Code, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	w := ask(h, "/")
	body := w.Body.String()
	for _, want := range []string{
		"Runs in chaos-runs<", "two clients &lt;b&gt;held&lt;/b&gt; it", "no server", `<a href="./night/">night</a>`,
		`<a href="./running/">running</a>`, "torn/7/run.json: not a file of at most 16 MiB",
		`<a href="?q=&amp;verdict=unreadable">3 unreadable</a>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self'") ||
		!strings.Contains(policy, "script-src 'none'") {
		t.Error(policy)
	}
}

// TestRunsAreNotListed: a run, a directory with a page or without runs, and a request for the files get what they did.
func TestRunsAreNotListed(t *testing.T) {
	dir := runsDir(t)
	write(t, filepath.Join(dir, "notes", "a.txt"), "text")
	h := handler(t, dir)
	for target, want := range map[string]string{
		"/?files": `<a href="failover/">`, "/failover/1/": `<a href="run.json">`, "/latest/": `<a href="run.json">`,
		"/night/": "a suite", "/notes/": `<a href="a.txt">`,
	} {
		if w := ask(h, target); !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "Runs in") {
			t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}

// TestManyRuns: a page has a limited number of runs, and finds each of them by a word.
func TestManyRuns(t *testing.T) {
	dir := t.TempDir()
	for n := range runsShown + 2 {
		write(t, filepath.Join(dir, fmt.Sprint("r", n), "run.json"),
			fmt.Sprintf(`{"scenario":"s%04d","started":"2026-01-02T03:04:05.%06dZ"}`, n, n))
	}
	h := handler(t, dir)
	body := ask(h, "/").Body.String()
	if got := rows(body); len(got) != runsShown || !strings.Contains(got[0], fmt.Sprintf("s%04d", runsShown+1)) {
		t.Errorf("%d rows", len(got))
	}
	if !strings.Contains(body, fmt.Sprintf("The latest %d of %d runs", runsShown, runsShown+2)) {
		t.Error("the page does not say that there are others")
	}
	if got := rows(ask(h, "/?q=s0000").Body.String()); len(got) != 1 {
		t.Errorf("the oldest run: %q", got)
	}
}
