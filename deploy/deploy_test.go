// Package deploy has no code. Its tests run the commands of the jobs beside it, of the nightly workflow, and of the
// jobs in examples/ci.
package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// buildDir is the directory in which these tests build chaos.
var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "deploy-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// program builds chaos once, for the tests that run it.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "chaos")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/chaos").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building chaos: %w\n%s", err, out)
	}
	return path, err
})

// little is chaos with less to do: a suite of four scenarios on simulated servers, and three seeds to explore. It gets
// all other arguments of the pipeline.
const little = `#!/bin/bash
args=()
for arg; do
	[ "$arg" = 1000000 ] && arg=3
	[ "$arg" = process ] || [ "$arg" = docker ] && arg=sim
	args+=("$arg")
done
[ "$1" = suite ] && [ "$2" != merge ] &&
	args+=(--filter 'gc-pause|plain-del|compare-and-delete|contention')
exec "$CHAOS" "${args[@]}"
`

// machine is a place where jobs of a pipeline run: commands that install or publish do nothing there.
type machine struct {
	t         *testing.T
	path      string // PATH
	chaos     string
	artifacts string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	for _, name := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("NOT RUN: needs ", name)
		}
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	chaos, err := program()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, text := range map[string]string{
		"chaos": little, "apt-get": "#!/bin/sh\n", "sudo": "#!/bin/sh\n", "gh": "#!/bin/sh\n",
		"go": "#!/bin/sh\n[ \"$1\" = install ] || exec " + compiler + " \"$@\"\n",
		// make: the target must be there
		"make": "#!/bin/sh\ngrep -q \"^$1:\" Makefile\n",
	} {
		write(t, filepath.Join(bin, name), text, 0o755)
	}
	return machine{t, bin + ":" + os.Getenv("PATH"), chaos, t.TempDir()}
}

func write(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// checkout is a new directory with a job's files from the repository, and bin/chaos.
func (m machine) checkout() string {
	m.t.Helper()
	dir := m.t.TempDir()
	for _, name := range []string{"scripts", "Makefile", "scenarios"} {
		target, err := filepath.Abs(filepath.Join("..", name))
		if err == nil {
			err = os.Symlink(target, filepath.Join(dir, name))
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		m.t.Fatal(err)
	}
	write(m.t, filepath.Join(dir, "bin", "chaos"), little, 0o755)
	return dir
}

// try runs a command of a job as CI services do.
func (m machine) try(dir, shell, command string, env ...string) error {
	c := exec.Command(shell, "-e", "-c", command)
	c.Dir = dir
	c.Env = slices.Concat(os.Environ(), []string{"PATH=" + m.path, "CHAOS=" + m.chaos}, env)
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s\n%w\n%s", command, err, out)
	}
	return err
}

// run is try for a command that must succeed.
func (m machine) run(dir, shell, command string, env ...string) {
	m.t.Helper()
	if err := m.try(dir, shell, command, env...); err != nil {
		m.t.Fatal(err)
	}
}

// keep copies the files in dir that match a pattern to the artifacts of a name; no file is an error unless it may be
// missing.
func (m machine) keep(dir, pattern, name string, optional bool) {
	m.t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 && !optional {
		m.t.Fatalf("artifact %s: nothing is at %s: %v", name, pattern, err)
	}
	for _, path := range found {
		to := filepath.Join(m.artifacts, name)
		if strings.Contains(pattern, "*") { // the folders themselves, not their content
			to = filepath.Join(to, filepath.Base(path))
		}
		m.copy(path, to)
	}
}

func (m machine) copy(from, to string) {
	m.t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		m.t.Fatal(err)
	}
}

func readYAML(t *testing.T, file string, v any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// whole checks that the suite in dir has all scenarios of little, from so many shards.
func whole(t *testing.T, dir string, shards int) {
	t.Helper()
	s, err := suite.Read(dir)
	if err != nil || len(s.Rows) != 4 || len(s.Shards) != shards || s.ExitCode() != 0 {
		t.Errorf("%d rows of shards %v, exit code %d: %v", len(s.Rows), s.Shards, s.ExitCode(), err)
	}
}

// TestGitLab runs the jobs of the pipeline for GitLab.
func TestGitLab(t *testing.T) {
	type job struct {
		Stage     string
		Needs     []string
		Parallel  any
		Script    []string
		Artifacts struct{ Paths []string }
	}
	var p struct {
		Default struct {
			BeforeScript []string `yaml:"before_script"`
		}
		Variables             map[string]string
		Shard, Explore, Suite job
	}
	readYAML(t, "gitlab-ci.yml", &p)
	m := newMachine(t)
	run := func(j job, name string, env ...string) {
		dir := t.TempDir()
		if len(j.Needs) > 0 {
			m.copy(filepath.Join(m.artifacts, j.Needs[0]), dir)
		}
		for key, value := range p.Variables {
			env = append(env, key+"="+strings.ReplaceAll(value, "${CI_PIPELINE_IID}", "7"))
		}
		m.run(dir, "bash", strings.Join(slices.Concat(p.Default.BeforeScript, j.Script), "\n"), env...)
		for _, path := range j.Artifacts.Paths {
			m.keep(dir, path, name, name == "explore")
		}
	}
	shards, ok := p.Shard.Parallel.(uint64)
	if !ok {
		t.Fatalf("parallel: %v", p.Shard.Parallel)
	}
	for i := range shards {
		run(p.Shard, "shard", fmt.Sprint("CI_NODE_INDEX=", i+1), fmt.Sprint("CI_NODE_TOTAL=", shards))
	}
	run(p.Explore, "explore", "SCENARIO=swarm-single")
	run(p.Suite, "suite")
	whole(t, filepath.Join(m.artifacts, "suite"), int(shards))
}

// indexedJob is a Job of Kubernetes with one container.
type indexedJob struct {
	Spec struct {
		Completions, Parallelism int
		Template                 struct {
			Spec struct {
				Containers []struct{ Command, Args []string }
			}
		}
	}
}

// TestKubernetes runs the commands of the pods, and compares the numbers of shards.
func TestKubernetes(t *testing.T) {
	race.SkipLong(t, "it runs a suite in every pod")
	var shards, merge indexedJob
	readYAML(t, "kubernetes/suite.yaml", &shards)
	readYAML(t, "kubernetes/merge.yaml", &merge)
	var k struct {
		ConfigMapGenerator []struct{ Literals []string } `yaml:"configMapGenerator"`
	}
	readYAML(t, "kubernetes/kustomization.yaml", &k)
	env := k.ConfigMapGenerator[0].Literals
	n := shards.Spec.Completions
	if want := fmt.Sprint("SHARDS=", n); !slices.Contains(env, want) || shards.Spec.Parallelism != n {
		t.Errorf("%d completions, %d in parallel, and %v", n, shards.Spec.Parallelism, env)
	}
	m := newMachine(t)
	results := t.TempDir()
	pod := func(j indexedJob, env ...string) {
		c := j.Spec.Template.Spec.Containers[0]
		m.run(results, c.Command[0], strings.ReplaceAll(c.Args[0], "/results", results), env...)
	}
	for i := range n {
		pod(shards, append(env, fmt.Sprint("JOB_COMPLETION_INDEX=", i))...)
	}
	pod(merge, env...)
	whole(t, filepath.Join(results, "suite"), n)
}

// TestSlurm runs the job array and the merge on a Slurm of one node.
func TestSlurm(t *testing.T) {
	race.SkipLong(t, "it runs suites in a cluster of one node")
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, name := range []string{"slurmctld", "slurmd", "sbatch", "munged"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("NOT RUN: %s is missing: apt-get install slurmctld slurmd slurm-client munge", name)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: slurmd needs root")
	}
	m := newMachine(t)
	out := t.TempDir()
	m.run(".", "bash", "slurm/one-node slurm/submit", "OUT="+out, "SHARDS=4", "SEED=1",
		"FILTER=gc-pause|plain-del|compare-and-delete|contention")
	whole(t, filepath.Join(out, "suite"), 4)
}
