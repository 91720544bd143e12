package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestMain makes the test binary behave as chaos when it is started as a child:
// chaos run starts its own executable as client.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == stalls {
		endStalled("virtual time is blocked: a goroutine waits")
	}
	if len(os.Args) == 2 && os.Args[1] == aborts {
		abortBySignal()
		go func() { panic("a defect") }()
		select {}
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(run(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
	}
	if err := os.Setenv(asProgram, "1"); err != nil { // for the children of tests
		panic(err)
	}
	os.Exit(m.Run())
}

// aborts makes the test binary end by a panic of a goroutine.
const aborts = "abort"

// stalls makes the test binary end like a simulation whose virtual time is blocked.
const stalls = "stalled-simulation"

const asProgram = "LOCKCHAOS_TEST_PROGRAM"

// chaos runs the program in this process.
func chaos(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, streams{in: strings.NewReader(""), out: &out, err: &err})
	return code, out.String(), err.String()
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("NOT RUN: needs redis-server on the PATH (Debian, Ubuntu: apt-get install redis-server)")
	}
}

const quickScenario = `
name: quick
summary: a holder stalls for longer than its lease
topology: {kind: single}
lock: reentrant
workload: {clients: 3, hold: 50ms, lease: 300ms}
faults:
  - {after: 100ms, when: acquired, fault: pause-client, target: holder, for: 1500ms}
duration: 2s
expect:
  verdict: unsafe, outlived lease
  except:
    damage: {outcome: holds or violated, because: "the run is short"}
    hold-count: {outcome: holds or not-applicable, because: "the run is short"}
`

func writeScenario(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quick.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// judgedAgain checks that a report does not show the verdict of another history, until check has replaced it.
func judgedAgain(t *testing.T, dir string) {
	t.Helper()
	const again = "history.jsonl has changed since it was judged"
	if code, _, stderr := chaos("report", dir); code != exitSafe || strings.Contains(stderr, again) {
		t.Errorf("report: %d %s", code, stderr)
	}
	f, err := os.OpenFile(filepath.Join(dir, "history.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString("\n"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	for range 2 { // a judgement with other options is not the run's
		if code, _, stderr := chaos("report", dir); code != exitSafe || !strings.Contains(stderr, again) {
			t.Errorf("report of another history: %d %s", code, stderr)
		}
		chaos("check", dir, "--property", "exclusion")
	}
	chaos("check", dir)
	if _, _, stderr := chaos("report", dir); strings.Contains(stderr, again) {
		t.Errorf("report after check: %s", stderr)
	}
}

// TestRunCheckReport runs a scenario file, judges its history and renders every format.
func TestRunCheckReport(t *testing.T) {
	needRedis(t)
	junit := filepath.Join(t.TempDir(), "sub", "result.xml")
	path := writeScenario(t, quickScenario)
	stdout, dir := realRun(t, exitUnsafe, "", "--scenario", path, "--seed", "3", "--junit", junit)
	for _, want := range []string{"UNSAFE (outlived lease)", "report.html", "chaos run --scenario", "--seed 3"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the result does not say %q:\n%s", want, stdout)
		}
	}
	last := strings.TrimSpace(stdout[strings.LastIndex(strings.TrimSpace(stdout), "\n"):])
	if !strings.HasPrefix(last, "chaos run ") {
		t.Errorf("the last line is not the command that repeats the run: %q", last)
	}
	if text, err := os.ReadFile(junit); err != nil || xml.Unmarshal(text, new(struct{ XMLName xml.Name })) != nil {
		t.Errorf("JUnit: %v\n%s", err, text)
	}
	for _, name := range []string{"run.json", "history.jsonl", "witness.jsonl", "verdict.json", "report.html",
		"overlap.svg", "latency.svg", "rate.svg", "linearization.html"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, stdout, _ := chaos("check", dir); code != exitUnsafe || !strings.Contains(stdout, "UNSAFE") {
		t.Errorf("check: %d %s", code, stdout)
	}
	code, stdout, _ := chaos("check", dir, "--property", "lease-exclusion", "--property", "honesty")
	if code != exitSafe && code != exitInconclusive { // few grants if the machine is busy; the promises were kept
		t.Errorf("check of the promises of the lock: %d %s", code, stdout)
	}
	judgedAgain(t, dir)
	file := filepath.Join(dir, "history.jsonl")
	if code, stdout, _ := chaos("check", file, "--json", "--property", "exclusion"); code != exitUnsafe ||
		!json.Valid([]byte(stdout)) {
		t.Errorf("check --json: %d %s", code, stdout)
	}
	for _, format := range formatNames() {
		if code, stdout, stderr := chaos("report", dir, "--format", format); code != exitSafe || len(stdout) < 200 {
			t.Errorf("report --format %s: %d, %d bytes, %s", format, code, len(stdout), stderr)
		}
	}
}

func TestExpectChangesTheExitCode(t *testing.T) {
	needRedis(t)
	path := writeScenario(t, quickScenario)
	realRun(t, exitSafe, "", "--scenario", path, "--expect", "--json")
	stdout, _ := realRun(t, exitUnsafe, "exclusion: expected holds, got violated", "--scenario", path, "--expect",
		"--json", "--set", "expect.except.exclusion={outcome: holds, because: a test}")
	if !json.Valid([]byte(stdout)) {
		t.Errorf("--json printed more than one JSON object:\n%s", stdout)
	}
}

func TestBadInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(file, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(torn, []byte("{\"index\":0,\n{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args    []string
		code    int
		message string
	}{
		{[]string{"rnu"}, exitUsage, "did you mean run?"},
		{[]string{"run"}, exitUsage, "--scenario is required"},
		{[]string{"run", "--scenaro", "x"}, exitUsage, "did you mean --scenario?"},
		{[]string{"run", "--seed", "x"}, exitUsage, "--seed"},
		{[]string{"run", "x"}, exitUsage, "name the scenario with --scenario"},
		{[]string{"run", "--scenario", "failovr"}, exitUsage, "did you mean failover?"},
		{[]string{"run", "--scenario", "./none.yaml"}, exitUsage, "no such file"},
		{[]string{"run", "--scenario", "failover", "--lock", "redlok"}, exitUsage, "did you mean redlock?"},
		{[]string{"run", "--scenario", "failover", "--lock", "redlock"}, exitUsage, "does not run on topology sentinel"},
		{[]string{"run", "--scenario", "failover", "--set", "workload.clint=3"}, exitUsage, "unknown key \"clint\""},
		{[]string{"run", "--scenario", "failover", "--clients", "-1"}, exitUsage, "clients must be between 1 and 1,000"},
		{[]string{"run", "--scenario", "failover", "--backend", "procss"}, exitUsage, "did you mean process?"},
		{[]string{"check"}, exitUsage, "a history file, a run directory, or - for standard input"},
		{[]string{"check", "nowhere"}, exitUsage, "nowhere"},
		{[]string{"check", t.TempDir()}, exitUsage, "run"},
		{[]string{"check", torn}, exitUsage, "bad.jsonl:1:"},
		{[]string{"check", file, "--property", "exclusio"}, exitUsage, "did you mean exclusion?"},
		{[]string{"report", t.TempDir()}, exitUsage, "run.json"},
		{[]string{"report", "x", "--format", "hmtl"}, exitUsage, "did you mean html?"},
		{[]string{"list", "scenario"}, exitUsage, "did you mean scenarios?"},
	} {
		code, stdout, stderr := chaos(c.args...)
		if code != c.code || !strings.Contains(stderr, c.message) {
			t.Errorf("chaos %s: exit code %d, want %d with %q\n%s%s",
				strings.Join(c.args, " "), code, c.code, c.message, stdout, stderr)
		}
		if strings.Contains(stderr, "panic") || strings.Contains(stderr, "goroutine") {
			t.Errorf("chaos %s: %s", strings.Join(c.args, " "), stderr)
		}
	}
}

func TestRunsDirectoryIsAFile(t *testing.T) {
	needRedis(t)
	file := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := chaos("run", "--scenario", "gc-pause", "--out", file)
	if code != exitEnvironment || !strings.Contains(stderr, "a-file") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestLatestTaken: a run whose link cannot be set says so.
func TestLatestTaken(t *testing.T) {
	out := t.TempDir()
	if err := os.Mkdir(filepath.Join(out, "latest"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := chaos("run", "--scenario", "gc-pause", "--backend", "sim", "--expect", "--seed", "1", "--out", out)
	if code != exitSafe || !strings.Contains(stderr, "the link latest was not updated") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestNoRedisServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, _, stderr := chaos("run", "--scenario", "failover", "--backend", "process", "--out", t.TempDir())
	if code != exitEnvironment || !strings.Contains(stderr, "apt-get install redis-server") {
		t.Errorf("run: exit code %d\n%s", code, stderr)
	}
	code, stdout, stderr := chaos("run", "--scenario", "failover", "--expect", "--out", t.TempDir())
	if code != exitSafe || !strings.Contains(stderr, "backend sim") || !strings.Contains(stderr, "backend process cannot run this scenario") {
		t.Errorf("run on sim: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, _ := chaos("doctor"); code != exitEnvironment || !strings.Contains(stdout, "MISSING") {
		t.Errorf("doctor: exit code %d\n%s", code, stdout)
	}
}

func TestDryRunStartsNothing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, stdout, stderr := chaos("run", "--scenario", "failover", "--dry-run", "--seed", "5")
	if code != exitSafe || !strings.Contains(stdout, "50ms after acquired: kill master") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestInterrupt sends a real Ctrl-C to a real process in the middle of a run.
func TestInterrupt(t *testing.T) {
	needRedis(t)
	out := t.TempDir()
	cmd := exec.Command(os.Args[0], "run", "--scenario", "failover", "--duration", "5m", "--out", out)
	var stderr, stdout bytes.Buffer
	cmd.Stderr, cmd.Stdout = &stderr, &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	history := filepath.Join(out, "failover", "latest", "history.jsonl")
	deadline, tick := time.Now().Add(5*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for text := ""; !strings.Contains(text, `"type":"ok"`); <-tick.C {
		b, _ := os.ReadFile(history)
		text = string(b)
		if time.Now().After(deadline) {
			t.Fatalf("no grant in five minutes\n%s", stderr.String())
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} { // two at once are one, see sameSignal
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("%v, want exit code %d\n%s", err, exitInterrupted, stderr.String())
	}
	if _, err := os.Stat(filepath.Join(out, "failover", "latest", "report.html")); err != nil {
		t.Errorf("no report after Ctrl-C: %v", err)
	}
}

// TestHelp: every command has a long help text and an example.
func TestHelp(t *testing.T) {
	t.Setenv(docker.ImageVariable, "") // the default of --docker-image
	var all strings.Builder
	for _, c := range append([]*cobra.Command{newRoot(streams{})}, newRoot(streams{}).Commands()...) {
		name := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "chaos"))
		code, stdout, _ := chaos(append(strings.Fields(name), "--help")...)
		if code != exitSafe {
			t.Errorf("chaos %s --help: exit code %d", name, code)
		}
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("chaos %s: short help %q, long help %q, example %q", name, c.Short, c.Long, c.Example)
		}
		fmt.Fprintf(&all, "==== chaos %s --help\n%s\n", name, stdout)
	}
	golden.File(t, "testdata/help.txt", all.String())
}

func TestLists(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	var all strings.Builder
	for _, c := range catalogs() {
		code, stdout, stderr := chaos("list", c.name)
		if code != exitSafe {
			t.Errorf("list %s: exit code %d\n%s", c.name, code, stderr)
		}
		if code, stdout, _ := chaos("list", c.name, "--json"); code != exitSafe || !json.Valid([]byte(stdout)) {
			t.Errorf("list %s --json: %d\n%s", c.name, code, stdout)
		}
		if c.name != "backends" { // they depend on the machine
			fmt.Fprintf(&all, "==== chaos list %s\n%s\n", c.name, stdout)
		}
	}
	golden.File(t, "testdata/lists.txt", all.String())
}

// TestVersion: a program that go install has built says its version, and a flag of the linker comes first.
func TestVersion(t *testing.T) {
	for _, c := range []struct{ linked, module, want string }{
		{unversioned, "v1.2.3", "v1.2.3"}, {unversioned, "(devel)", unversioned}, {unversioned, "", unversioned},
		{"v1.2.3-4-gabc", "v1.2.4", "v1.2.3-4-gabc"},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: c.module}}
		if got := versionOf(c.linked, info); got != c.want {
			t.Errorf("linked %q, module %q: %q, want %q", c.linked, c.module, got, c.want)
		}
	}
}
