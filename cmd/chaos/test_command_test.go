package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// TestLock: a lock with a known bug has it as a finding of its own, a correct one has none.
func TestLock(t *testing.T) {
	t.Parallel()
	run := func(lock string, more ...string) (code int, r evaluation.Report, out string) {
		t.Helper()
		out = t.TempDir()
		code, stdout, stderr := chaos(append([]string{"test", "--lock", lock, "--backend", "sim", "--seed", "1", "--out", out,
			"--json"}, more...)...)
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("exit code %d: %v\n%s%s", code, err, stdout, stderr)
		}
		return code, r, out
	}
	code, r, out := run("set-nx-ex", "--fail-fast", "--jobs", "1") // released by plain DEL
	own := r.Own()
	if code != exitUnsafe || len(own) == 0 {
		t.Fatalf("exit code %d, findings: %+v", code, r.Findings)
	}
	if f := own[0]; f.Cause != "foreign-release" || len(f.Advice) == 0 || !strings.Contains(f.Repeat, "--lock set-nx-ex") {
		t.Errorf("finding: %+v", f)
	}
	if _, err := os.Stat(filepath.Join(out, own[0].Report())); err != nil {
		t.Error(err)
	}
	code, r, _ = run("mutex", "--time", "10s")
	if code == exitUnsafe || len(r.Own()) > 0 || len(r.Held) == 0 || len(r.NotTested) == 0 {
		t.Errorf("a correct lock: exit code %d, %+v", code, r)
	}
}

// TestRepeatOfSimulatedFinding: the command that repeats a finding of generated scenarios makes the same run, also if
// the test draws from some topologies of the lock only.
func TestRepeatOfSimulatedFinding(t *testing.T) {
	t.Parallel()
	lock, err := generator.Find("set-nx-ex")
	if err != nil {
		t.Fatal(err)
	}
	lock.Kinds = []string{cluster.Replicated}
	out := t.TempDir()
	report, err := evaluation.Run(t.Context(), evaluation.Options{
		Lock: lock, Seed: 1, Jobs: 1, Time: time.Minute, FailFast: true, Out: out, Command: []string{"not run"},
		Missing: func(suite.Scenario) string { return "only generated scenarios" },
		Explore: func(ctx context.Context, o explore.Options) (evaluation.Explored, error) {
			o.Seeds = 20
			return exploreFor(streams{err: io.Discard})(ctx, o)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) == 0 {
		t.Fatalf("nothing was found: %+v", report.Runs)
	}
	for _, f := range report.Findings {
		again := t.TempDir()
		code, stdout, stderr := chaos(append(strings.Fields(f.Repeat)[1:], "--out", again)...)
		if code != exitUnsafe {
			t.Errorf("%s: exit code %d\n%s%s", f.Repeat, code, stdout, stderr)
		}
		drawn, errDrawn := lock.Draw(f.Seed)
		run, errRun := loadRun(filepath.Join(again, rundir.Latest))
		if errDrawn != nil || errRun != nil {
			t.Fatal(errDrawn, errRun)
		}
		if run.Manifest.YAML != drawn.YAML() {
			t.Errorf("%s runs another scenario:\n%s", f.Repeat, run.Manifest.YAML)
		}
		if f.Run == "" { // a busy machine did not complete it in time
			continue
		}
		first, errFirst := os.ReadFile(filepath.Join(out, f.Run, rundir.HistoryFile))
		second, errSecond := os.ReadFile(filepath.Join(again, rundir.Latest, rundir.HistoryFile))
		if errFirst != nil || errSecond != nil || !bytes.Equal(first, second) {
			t.Errorf("%s makes another run (%v, %v)", f.Repeat, errFirst, errSecond)
		}
	}
}

// TestMissingEngine: the reason why nothing can run a scenario is the missing part of the first choice, not of the last
// one.
func TestMissingEngine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	s, err := loadScenario("gc-pause", runOptions{lock: "exec:./lock"}.overrides())
	if err != nil {
		t.Fatal(err)
	}
	why := missingOn(autoBackend)(suite.Scenario{Arg: s.Name, Scenario: s})
	if !strings.Contains(why, "redis-server") || strings.Contains(why, "docker") {
		t.Error(why)
	}
}

// ownRedis is the file of a scenario whose servers are Redis, but are described by their command line alone.
func ownRedis(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "own.yaml")
	err := os.WriteFile(file, []byte(`topology:
  kind: command
  run: redis-server --port {port.client} --bind {host} --dir {disk} --save '' --protected-mode no
lock: exec:./lock
workload: {kind: mutex}
duration: 5s
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestLockOnOwnServers: a lock that releases the hold of another owner is convicted on servers of the user, and the
// command that repeats the run starts the same ones.
func TestLockOnOwnServers(t *testing.T) {
	needRedis(t)
	client, err := os.ReadFile("../../examples/client.py")
	if err != nil {
		t.Fatal(err)
	}
	const compare = "if redis.call('get', KEYS[1]) == ARGV[1]"
	if !bytes.Contains(client, []byte(compare)) {
		t.Fatalf("examples/client.py no longer has %s", compare)
	}
	file := filepath.Join(t.TempDir(), "client.py")
	client = bytes.ReplaceAll(client, []byte(compare), []byte("if true"))
	if err := os.WriteFile(file, client, 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := chaos("test", "--lock", "exec:python3 "+file, "--topology", ownRedis(t), "--fail-fast",
		"--seed", "1", "--out", t.TempDir(), "--json")
	var r evaluation.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("exit code %d: %v\n%s%s", code, err, stdout, stderr)
	}
	if code != exitUnsafe || len(r.Own()) == 0 || !slices.Equal(r.Topologies, []string{cluster.Command}) {
		t.Fatalf("exit code %d, %+v", code, r)
	}
	if repeat := r.Own()[0].Repeat; !strings.Contains(repeat, `"run":"redis-server `) {
		t.Error(repeat)
	}
}

// TestLockUsage: a wrong command line starts nothing and names the mistake.
func TestLockUsage(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "baseline.json")
	if err := os.WriteFile(broken, []byte(`{"accept": [{"cause": "stolen"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	own := ownRedis(t)
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitUsage, "--lock is required"},
		{[]string{"--lock", "mutx"}, exitUsage, "mutex"},
		{[]string{"mutex"}, exitUsage, "--lock"},
		{[]string{"--lock", "mutex", "--topology", "sentinell"}, exitUsage, "sentinel"},
		{[]string{"--lock", "redlock", "--topology", "single"}, exitUsage, "does not run on topology single"},
		{[]string{"--lock", "exec:x", "--topology", "command"}, exitUsage, "name the FILE of a scenario of topology command"},
		{[]string{"--lock", "exec:x", "--topology", "single," + own}, exitUsage, "leave out all but " + own},
		{[]string{"--lock", "mutex", "--topology", own}, exitUsage, "mutex does not run on topology command"},
		{[]string{"--lock", "exec:x", "--topology", "./none.yaml"}, exitUsage, "none.yaml"},
		{[]string{"--lock", "mutex", "--time", "0s"}, exitUsage, "--time must be positive"},
		{[]string{"--lock", "mutex", "--backend", "prcess"}, exitUsage, "process"},
		{[]string{"--lock", "mutex", "--out", ""}, exitUsage, "--out must name a directory"},
		{[]string{"--lock", "mutex", "--baseline", broken}, exitUsage, "owner is missing"},
		{[]string{"--lock", "mutex", "--baseline", broken + ".none"}, exitUsage, "reading the baseline"},
		{[]string{"--lock", "mutex", "--out", "/proc/none"}, exitEnvironment, "/proc/none"},
	} {
		code, stdout, stderr := chaos(append([]string{"test"}, test.args...)...)
		if code != test.code || !strings.Contains(stderr, test.says) || stdout != "" {
			t.Errorf("%q: exit code %d, want %d\n%s%s", test.args, code, test.code, stdout, stderr)
		}
	}
}

// TestLockClient: a program that is no client is not tested, and the exit code is the environment's.
func TestLockClient(t *testing.T) {
	needRedis(t)
	out := t.TempDir()
	code, stdout, stderr := chaos("test", "--lock", "exec:false", "--time", "5s", "--out", out)
	const refused = "the client failed its checks: the lock was not tested"
	if code != exitEnvironment || !strings.Contains(stdout, refused) || strings.Contains(stdout, "Not tested") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(out, evaluation.PageFile)); err != nil {
		t.Error(err)
	}
}
