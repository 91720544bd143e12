package serve

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the template
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// Bounds of the list of runs.
const (
	runDepth    = 4        // of directories below the one that is shown
	directories = 50_000   // that are searched
	fileSize    = 16 << 20 // bytes of a file that is read
	runsShown   = 500      // on one page; a filter finds the others
)

//go:embed runs.tmpl
var runsText string

// runs is the content of the page of a directory of runs.
type runs struct {
	Name    string // of the directory
	Pages   []link // directories below it that have a page of their own, such as suites
	Query   string // words that each run has
	Verdict string // of each run; "": any
	Totals  []verdictTotal
	Runs    []run // the latest first, at most runsShown
	Found   int   // runs that match
	Limit   int   // of directories, if it ended the search; 0: it did not
}

type link struct{ Name, Link string }

// verdictTotal is how many runs match the query and have a verdict.
type verdictTotal struct {
	Verdict string
	Count   int
	Link    string
}

// run is a row of the page.
type run struct {
	Link     string // to its report, or to its directory if it has none
	Verdict  string // or the state of a run without one
	Sentence string
	Scenario string
	Lock     string
	Backend  string
	Seed     string
	Started  time.Time
}

// Time is when the run began, in UTC; "": not known.
func (r run) Time() string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.UTC().Format(time.DateTime)
}

// has reports whether each word is in one of the cells, ignoring case. The word seed and a number mean that seed.
func (r run) has(words []string) bool {
	cells := strings.ToLower(strings.Join(
		[]string{r.Verdict, r.Sentence, r.Scenario, r.Lock, r.Backend, r.Time()}, "\n"))
	for i := 0; i < len(words); i++ {
		if words[i] == "seed" && i+1 < len(words) {
			if _, err := strconv.ParseUint(words[i+1], 10, 64); err == nil {
				if i++; words[i] != r.Seed {
					return false
				}
				continue
			}
		}
		if !strings.Contains(cells, words[i]) && words[i] != r.Seed {
			return false
		}
	}
	return true
}

// listRuns serves the list of the runs below the directory of r, if it has no page of its own and is not a run, and if
// r does not ask for its files.
func listRuns(files served, w http.ResponseWriter, r *http.Request) bool {
	name, isDir := directory(r)
	query := r.URL.Query()
	if !isDir || query.Has("files") {
		return false
	}
	if exists(files, path.Join(name, suite.PageFile)) || exists(files, path.Join(name, rundir.ManifestFile)) {
		return false
	}
	page := runs{
		Name: path.Join(files.name(), name), Query: query.Get("q"), Verdict: query.Get("verdict"),
	}
	all := page.find(r.Context(), files, name)
	if len(all) == 0 {
		return false
	}
	page.fill(all)
	var text bytes.Buffer
	if err := template.Must(template.New("runs").Parse(runsText)).Execute(&text, &page); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return true
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy(nil, "'self'"))
	_, _ = w.Write(text.Bytes()) // an error means that the browser has gone
	return true
}

// name is the name of the root.
func (s served) name() string {
	whole, err := filepath.Abs(s.root.Name())
	if err != nil {
		whole = s.root.Name()
	}
	return filepath.Base(whole)
}

func exists(files fs.FS, name string) bool {
	_, err := fs.Stat(files, name)
	return err == nil
}

// Verdicts are the verdicts that a filter offers.
func (p *runs) Verdicts() (list []string) {
	for _, t := range p.Totals {
		list = append(list, t.Verdict)
	}
	if p.Verdict != "" && !slices.Contains(list, p.Verdict) {
		list = append(list, p.Verdict)
	}
	return list
}

// fill selects the runs that match, and counts them by verdict.
func (p *runs) fill(all []run) {
	words := strings.Fields(strings.ToLower(p.Query))
	counts := map[string]int{}
	for _, r := range all {
		if !r.has(words) {
			continue
		}
		counts[r.Verdict]++
		if p.Verdict == "" || p.Verdict == r.Verdict {
			p.Runs = append(p.Runs, r)
		}
	}
	for verdict, n := range counts {
		link := "?" + url.Values{"q": {p.Query}, "verdict": {verdict}}.Encode()
		p.Totals = append(p.Totals, verdictTotal{verdict, n, link})
	}
	slices.SortFunc(p.Totals, func(a, b verdictTotal) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Verdict, b.Verdict))
	})
	slices.SortStableFunc(p.Runs, func(a, b run) int { return b.Started.Compare(a.Started) })
	p.Found = len(p.Runs)
	p.Runs = p.Runs[:min(p.Found, runsShown)]
}

// find finds the runs and the pages below a directory. It follows no links: "latest" is one of the runs.
func (p *runs) find(ctx context.Context, files fs.FS, dir string) (found []run) {
	searched := 0
	_ = fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a directory that cannot be read is not shown
		}
		if searched++; searched > directories {
			p.Limit = directories
			return fs.SkipAll
		}
		if ctx.Err() != nil { // the browser has gone
			return fs.SkipAll
		}
		below := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		own := exists(files, path.Join(name, suite.PageFile)) || exists(files, path.Join(name, suite.ProgressFile))
		if name != dir && own {
			p.Pages = append(p.Pages, link{below, linkTo(below)})
		}
		if exists(files, path.Join(name, rundir.ManifestFile)) {
			found = append(found, readRun(files, name, below))
			return fs.SkipDir
		}
		if strings.Count(below, "/") >= runDepth {
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// linkTo links to a directory below the page's own.
func linkTo(below string) string { return (&url.URL{Path: "./" + below + "/"}).String() }

// readRun reads the row of the run in dir, which is called below on the page.
func readRun(files fs.FS, dir, below string) run {
	r := run{Link: linkTo(below), Scenario: below}
	if exists(files, path.Join(dir, rundir.ReportFile)) {
		r.Link += rundir.ReportFile
	}
	var m struct {
		State    rundir.State `json:"state"`
		Failure  string       `json:"failure"`
		Scenario string       `json:"scenario"`
		Lock     string       `json:"lock"`
		Backend  string       `json:"backend"`
		Seed     *uint64      `json:"seed"`
		Started  time.Time    `json:"started"`
	}
	if err := readJSON(files, path.Join(dir, rundir.ManifestFile), &m); err != nil {
		r.Verdict, r.Sentence = "unreadable", err.Error()
		return r
	}
	r.Scenario, r.Lock, r.Backend, r.Started = cmp.Or(m.Scenario, below), m.Lock, m.Backend, m.Started
	if m.Seed != nil {
		r.Seed = fmt.Sprint(*m.Seed)
	}
	var v struct {
		Verdict  string `json:"verdict"`
		Sentence string `json:"sentence"`
	}
	err := readJSON(files, path.Join(dir, rundir.VerdictFile), &v)
	switch {
	case err == nil && v.Verdict != "":
		r.Verdict, r.Sentence = v.Verdict, v.Sentence
	case errors.Is(err, fs.ErrNotExist) && m.State == rundir.Running:
		r.Verdict, r.Sentence = string(rundir.Running), "no verdict yet: the run is in progress, or was killed"
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		r.Verdict, r.Sentence = "unreadable", err.Error()
	default:
		r.Verdict, r.Sentence = cmp.Or(string(m.State), "unknown"), m.Failure
	}
	return r
}

func readJSON(files fs.FS, name string, v any) error {
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > fileSize:
		return fmt.Errorf("%s: not a file of at most %d MiB", name, fileSize>>20)
	}
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
