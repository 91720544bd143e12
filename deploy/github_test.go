package deploy

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

type workflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Needs    string
		Strategy struct{ Matrix map[string][]string }
		Steps    []step
	}
}

type step struct {
	If, Uses, Run, Shell string
	With, Env            map[string]string
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// expand replaces the expressions of a workflow in text.
func expand(t *testing.T, text string, values map[string]string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(x string) string {
		value, ok := values[expression.FindStringSubmatch(x)[1]]
		if !ok {
			t.Errorf("unknown expression %s", x)
		}
		return value
	})
}

// steps does the steps of a job or of an action in dir, as GitHub does: after a failure only the steps that always run.
func (m machine) steps(dir string, all []step, values, env map[string]string) (failed error) {
	m.t.Helper()
	for _, s := range all {
		if failed == nil || s.If == "always()" {
			err := m.step(dir, s, values, env)
			if err != nil {
				m.t.Log(err)
			}
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (m machine) step(dir string, s step, values, env map[string]string) error {
	m.t.Helper()
	with := func(key string) string { return expand(m.t, s.With[key], values) }
	switch action, _, _ := strings.Cut(s.Uses, "@"); {
	case s.Run != "":
		all := []string{"GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary")}
		for _, e := range []map[string]string{env, s.Env} {
			for name, value := range e {
				all = append(all, name+"="+expand(m.t, value, values))
			}
		}
		return m.try(dir, "bash", expand(m.t, s.Run, values), all...)
	case action == "actions/upload-artifact":
		m.keep(dir, with("path"), with("name"), with("if-no-files-found") == "ignore")
	case action == "actions/download-artifact":
		found, err := filepath.Glob(filepath.Join(m.artifacts, with("pattern")))
		if err != nil || len(found) == 0 {
			m.t.Fatalf("no artifact is called %s: %v", with("pattern"), err)
		}
		for _, path := range found {
			m.copy(path, filepath.Join(dir, with("path"), filepath.Base(path)))
		}
	}
	return nil
}

// TestNightly runs the jobs of the nightly workflow whose commands are chaos's: suites in shards, their merge, the
// history, issues, explorations. Only the targets of make are checked of the others.
func TestNightly(t *testing.T) {
	race.SkipLong(t, "it runs the suites of a night")
	var w workflow
	readYAML(t, "../.github/workflows/nightly.yml", &w)
	m := newMachine(t)
	values := map[string]string{
		"github.run_number": "7", "github.run_id": "8", "github.token": "secret", "github.server_url": "https://ci.example",
		"github.repository": "team/project",
	}
	names := slices.Sorted(maps.Keys(w.Jobs))
	slices.SortStableFunc(names, func(a, b string) int { return len(w.Jobs[a].Needs) - len(w.Jobs[b].Needs) })
	ran := 0
	for _, name := range names {
		job := w.Jobs[name]
		commands := ""
		for _, s := range job.Steps {
			commands += s.Run + "\n"
		}
		suite := strings.Contains(commands, "bin/chaos") && !strings.Contains(commands, "go test") &&
			!strings.Contains(commands, "docker build")
		if !suite {
			job.Strategy.Matrix = nil
			job.Steps = slices.DeleteFunc(job.Steps, func(s step) bool { return !strings.HasPrefix(s.Run, "make ") })
		} else {
			ran++
		}
		variants := []map[string]string{{}}
		for key, all := range job.Strategy.Matrix {
			variants = nil
			for _, value := range all {
				variants = append(variants, map[string]string{"matrix." + key: value})
			}
		}
		for _, variant := range variants {
			maps.Copy(values, variant)
			dir := m.checkout()
			if err := m.steps(dir, job.Steps, values, w.Env); err != nil {
				t.Fatal(err)
			}
			text, _ := os.ReadFile(filepath.Join(dir, "summary"))
			if suite && strings.Contains(commands, "GITHUB_STEP_SUMMARY") && !bytes.Contains(text, []byte("as expected")) {
				t.Errorf("job %s: the summary is %q", name, text)
			}
		}
	}
	if ran < 5 {
		t.Errorf("%d jobs were run", ran)
	}
	whole(t, filepath.Join(m.artifacts, "suite-process"), 4)
}
