package deploy

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// jobTime is for how long the jobs of a lock test it here; their files say 3m.
const jobTime = "10s"

// TestJobsOfALock runs the jobs of examples/ci for the client in Python, in which they find nothing, and for a client
// that is granted a lock that another client holds. Both keep their results.
func TestJobsOfALock(t *testing.T) {
	race.SkipLong(t, "it builds chaos and tests a lock for each service")
	for _, program := range []string{"python3", "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: needs %s on the PATH", program)
		}
	}
	text, err := os.ReadFile("../examples/client.py")
	if err != nil {
		t.Fatal(err)
	}
	correct := string(text)
	broken := strings.Replace(correct, `"NX", `, "", 1)
	if broken == correct {
		t.Fatal("the client has no NX that a broken one could lack")
	}
	for _, service := range []struct {
		name string
		run  func(t *testing.T, m machine, dir string) error
	}{{"github", gitHubJob}, {"gitlab", gitLabJob}} {
		for _, lock := range []struct {
			name, source string
			codes        []int
		}{
			{"correct", correct, []int{0, 2}}, // 2: in so short a time a busy machine tests too little
			{"broken", broken, []int{1}},
		} {
			t.Run(service.name+"/"+lock.name, func(t *testing.T) {
				m, dir := newMachine(t), t.TempDir()
				write(t, filepath.Join(dir, "lock.py"), lock.source, 0o644)
				if lock.name == "correct" {
					write(t, filepath.Join(dir, "lockchaos.json"), `{"accept": []}`, 0o644)
				}
				code := 0
				if err := service.run(t, m, dir); err != nil {
					t.Log(err)
					var exit *exec.ExitError
					if code = -1; errors.As(err, &exit) {
						code = exit.ExitCode()
					}
				}
				if !slices.Contains(lock.codes, code) {
					t.Errorf("the job ended with exit code %d, want one of %v", code, lock.codes)
				}
				for _, name := range []string{"index.html", "summary.md", "junit.xml", "test.json"} {
					if text, err := os.ReadFile(filepath.Join(m.artifacts, "chaos-test", name)); len(text) == 0 {
						t.Errorf("artifact %s has %d bytes: %v", name, len(text), err)
					}
				}
			})
		}
	}
}

// readJob reads a file of examples/ci, which must be short.
func readJob(t *testing.T, name string, v any) {
	t.Helper()
	file := filepath.Join("../examples/ci", name)
	text, err := os.ReadFile(file)
	if n := bytes.Count(text, []byte("\n")); err != nil || n > 20 {
		t.Errorf("%s has %d lines, more than 20: %v", file, n, err)
	}
	readYAML(t, file, v)
}

// gitHubJob does the job of the workflow: its steps are the action's, with a chaos that the action builds.
func gitHubJob(t *testing.T, m machine, dir string) error {
	t.Helper()
	var w workflow
	readJob(t, "github.yml", &w)
	var action struct {
		Inputs map[string]struct {
			Required bool
			Default  string
		}
		Runs struct{ Steps []step }
	}
	readYAML(t, "../action.yml", &action)
	steps := w.Jobs["lock"].Steps
	used := steps[len(steps)-1]
	if !strings.HasPrefix(used.Uses, "lockchaos/lockchaos@") || used.With["time"] != "3m" {
		t.Fatalf("the last step is %+v", used)
	}
	used.With["time"] = jobTime
	if _, err := os.Stat(filepath.Join(dir, "lockchaos.json")); err == nil {
		used.With["baseline"] = "lockchaos.json"
	}
	values := map[string]string{}
	for name, input := range action.Inputs {
		values["inputs."+name] = input.Default
		if input.Required && used.With[name] == "" {
			t.Errorf("input %s is missing", name)
		}
	}
	for name, value := range used.With {
		if _, ok := values["inputs."+name]; !ok {
			t.Errorf("the action has no input %s", name)
		}
		values["inputs."+name] = value
	}
	for _, s := range action.Runs.Steps {
		if s.Run != "" && s.Shell != "bash" {
			t.Errorf("an action needs the shell of %q", s.Run)
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	failed := m.steps(dir, action.Runs.Steps, values, map[string]string{
		"GITHUB_ACTION_PATH": root, "RUNNER_TEMP": t.TempDir(),
	})
	shown, err := os.ReadFile(filepath.Join(dir, "summary"))
	kept, _ := os.ReadFile(filepath.Join(m.artifacts, "chaos-test", "summary.md"))
	if !bytes.Equal(shown, kept) {
		t.Errorf("the summary of the job is %q: %v", shown, err)
	}
	return failed
}

// gitLabJob does the job of the pipeline.
func gitLabJob(t *testing.T, m machine, dir string) error {
	t.Helper()
	var p struct {
		Lock struct {
			BeforeScript []string `yaml:"before_script"`
			Script       []string
			Artifacts    struct {
				Paths   []string
				Reports struct{ Junit string }
			}
		}
	}
	readJob(t, "gitlab-ci.yml", &p)
	commands := strings.Join(append(p.Lock.BeforeScript, p.Lock.Script...), "\n")
	if strings.Count(commands, "--time 3m") != 1 {
		t.Fatalf("the commands are %s", commands)
	}
	failed := m.try(dir, "bash", strings.Replace(commands, "3m", jobTime, 1))
	for _, path := range p.Lock.Artifacts.Paths {
		m.keep(dir, path, path, false)
	}
	if _, err := os.Stat(filepath.Join(dir, p.Lock.Artifacts.Reports.Junit)); err != nil {
		t.Error(err)
	}
	return failed
}
