package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExitCodesAreDocumented: the help, the README and the design list the exit codes of this package, and besides them
// only codes that are marked as planned.
func TestExitCodesAreDocumented(t *testing.T) {
	var want []string
	for _, code := range []int{exitSafe, exitUnsafe, exitInconclusive, exitThreshold, exitUsage, exitEnvironment,
		exitInternal, exitInterrupted, exitAborted, exitBrokenPipe} {
		want = append(want, fmt.Sprint(code))
	}
	var help []string
	for _, m := range regexp.MustCompile(`(?m)^  (\d+) `).FindAllStringSubmatch(exitHelp, -1) {
		help = append(help, m[1])
	}
	if diff := cmp.Diff(want, help); diff != "" {
		t.Errorf("exitHelp (-want +got):\n%s", diff)
	}
	for _, path := range []string{"../../docs/reference/commands.md", "../../docs/design.md"} {
		_, rest, _ := strings.Cut(readFile(t, path), "Exit codes: ")
		list, _, _ := strings.Cut(rest, ". ")
		var got []string
		for _, part := range strings.Split(list, "·") {
			if code := strings.Fields(part); len(code) > 0 && !strings.Contains(part, "(planned)") {
				got = append(got, code[0])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// TestCommandsAreDocumented: the page of commands and the design name every command, and the
// design marks the missing ones as planned.
func TestCommandsAreDocumented(t *testing.T) {
	var want []string
	for _, c := range newRoot(streams{}).Commands() {
		if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			want = append(want, c.Name())
		}
	}
	slices.Sort(want)
	design := readFile(t, "../../docs/design.md")
	_, design, _ = strings.Cut(design, "### 5.1")
	design, _, _ = strings.Cut(design, "Exit codes:")
	for path, text := range map[string]string{
		"docs/reference/commands.md": readFile(t, "../../docs/reference/commands.md"), "docs/design.md": design,
	} {
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^    chaos ([a-z]+)(.*)$`).FindAllStringSubmatch(text, -1) {
			planned := strings.Contains(m[2], "(planned)") || strings.Contains(m[2], "(hidden)")
			if !planned && m[1] != "completion" && !slices.Contains(got, m[1]) {
				got = append(got, m[1])
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// TestUsageErrors: an error names the flag as it was given and the correct form, and quotes only text that the user
// wrote.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	mine := writeScenario(t, strings.Replace(quickScenario, "lock: reentrant", "lock: reentrent", 1))
	run := func(more ...string) []string { return append([]string{"run", "--scenario", "failover"}, more...) }
	clean := func(prefix string) []string { return []string{"clean", "--target", "redis://h", "--prefix", prefix} }
	for _, c := range []struct {
		args    []string
		message string
	}{
		{run("--seed", "-1"), "--seed -1: must be an integer from 0 to 18446744073709551615"},
		{run("--duration", "5"), "--duration 5: must be a duration with a unit, such as 5s"},
		{run("--clients", "five"), "--clients five: must be an integer"},
		{run("--json=yes!"), "must be true or false"},
		{run("--duration", "-5s"), "--duration -5s: a scenario needs a duration from"},
		{run("--clients", "-1"), "--clients -1: workload: clients must be between 1 and 1,000, not -1"},
		{run("--lock", "redlok"), `--lock redlok: unknown lock "redlok" (did you mean redlock?)`},
		{run("--lock", "redlock"), "--lock redlock: lock redlock does not run on topology sentinel"},
		{run("--set", "workload.clinets=3"), `--set "workload.clinets=3": unknown key "clinets" (did you mean clients?)`},
		{run("--set", "duration=5"), `--set "duration=5": "5" is not a duration`},
		{run("--set", "workload=3"), `--set "workload=3": expected a section`},
		{run("--set", "topology={kind: quorum}", "--lock", "redlock"), `with --lock redlock, --set "topology={kind: quorum}": faults[0]`},
		{[]string{"run", "--scenario", mine, "--duration", "3s"}, `lock: reentrent`}, // the user's text, with its line number
		{run("--dry-run", "--set", "topology.options.appendfsync=sometimes"),
			`appendfsync=sometimes": option appendfsync is one of always, everysec, no, not "sometimes"`},
		{run("--dry-run", "--set", "topology.options.appendonlyy=1"), `(did you mean appendonly?)`},
		{run("--backend", "podman"), `--backend: unknown backend "podman"; known are auto, process`},
		{run("--lock", "xyzzy"), `--lock xyzzy: unknown lock "xyzzy" (see chaos list locks; a program of your own is exec:COMMAND)`},
		{run("--set", "lease=2s"), `--set "lease=2s": unknown key "lease" (did you mean workload.lease?)`},
		{run("--dry-run", "--backend", "prcess"), `--backend: unknown backend "prcess" (did you mean process?)`},
		{run("--dry-run", "--target", "http://x"), `--target: unknown scheme "http"`},
		{run("--dry-run", "--target", "redis://x", "--allow", "everything"), `--allow: "everything" is not failover`},
		{run("--dry-run", "--target", "redis://x", "--backend", "sim"), "--backend and --target exclude each other"},
		{run("--dry-run", "--allow", "failover"), "--allow is for servers of your own: it needs --target"},
		{[]string{"rn", "--scenario", "failover"}, `unknown command "rn" (did you mean run?)`},
		{[]string{"adapters", "bild", "--jobs", "2"}, `unknown command "bild" (did you mean build?)`},
		{[]string{"--scenario", "failover"}, "unknown flag: --scenario (see chaos --help)"},
		{[]string{"help", "nosuch"}, `unknown command "nosuch"; known are adapters, `},
		{[]string{"help", "adapters", "bild"}, `unknown command "bild" (did you mean build?)`},
		{[]string{"help", "run", "failover"}, "chaos run has no command failover (see chaos run --help)"},
		{[]string{"clean", "--prefix", "lockchaos:ab12cd34ef:"}, "--prefix is for the keys at servers of your own"},
		{[]string{"clean", "--target-ca", "ca.pem"}, "--target-ca is for servers of your own"},
		{clean(""), "--target needs the --prefix of the run, such as lockchaos:ab12cd34ef:"},
		{clean("orders:ab12cd34ef:"), `--prefix "orders:ab12cd34ef:" is not the prefix of a run`},
		{clean("lockchaos:"), `--prefix "lockchaos:" is not the prefix of a run`},
		{clean("lockchaos:ab12*34ef:"), `--prefix "lockchaos:ab12*34ef:" is not the prefix of a run`},
		{clean("lockchaos:ab12\x0034ef:"), `--prefix "lockchaos:ab12\x0034ef:" is not the prefix of a run`},
		{[]string{"clean", "--target", "redis://h\x00", "--prefix", "lockchaos:ab12cd34ef:"},
			"--target: a host of the target is not HOST or HOST:PORT"},
		{[]string{"completion", "bsh"}, `unknown command "bsh" (did you mean bash?)`},
		{[]string{"list", "foo"}, `unknown list "foo"; known are scenarios, locks, `},
		{[]string{"list"}, "list needs one of: scenarios, locks, "},
		{[]string{"check", "/nonexist"}, "/nonexist: no such file or run directory"},
		{[]string{"report", "/nonexist"}, "/nonexist: no such file or run directory"},
		{[]string{"convert", "/nonexist", "--to", "edn"}, "/nonexist: no such file or run directory"},
		{[]string{"check", mine, "--clients", "-3"}, "--clients -3: must not be negative"},
	} {
		code, _, stderr := chaos(c.args...)
		if code != exitUsage || !strings.Contains(stderr, c.message) {
			t.Errorf("chaos %s: exit code %d, want %q\n%s", strings.Join(c.args, " "), code, c.message, stderr)
		}
		for _, word := range []string{"strconv", "invalid argument", "lstat", "Redis replicates"} {
			if strings.Contains(stderr, word) {
				t.Errorf("chaos %s mentions %q:\n%s", strings.Join(c.args, " "), word, stderr)
			}
		}
		if excerpt := strings.Contains(stderr, "\n>"); excerpt != (c.message == "lock: reentrent") {
			t.Errorf("chaos %s: an excerpt: %v\n%s", strings.Join(c.args, " "), excerpt, stderr)
		}
	}
}

// TestEachMistakeHasThePrefix: several mistakes in one scenario are several messages.
func TestEachMistakeHasThePrefix(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	text := "name: x\ntopology: {kind: single}\nlock: none\nduration: 0s\nfaults: [{fault: none}]\n"
	if err := os.WriteFile(wrong, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", "--scenario", wrong, "--dry-run"},
		{"run", "--scenario", "gc-pause", "--dry-run", "--lock", "none", "--duration", "-1s", "--set", "faults[0].fault=none"},
	} {
		_, _, stderr := chaos(args...)
		messages := 0
		for line := range strings.Lines(stderr) {
			switch {
			case strings.HasPrefix(line, "chaos: "):
				messages++
			case !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, ">"): // an excerpt
				t.Errorf("%q has no prefix", line)
			}
		}
		if messages != 3 {
			t.Errorf("%d messages, want 3:\n%s", messages, stderr)
		}
	}
}

// TestHelpOfCommands: chaos help COMMAND prints the same as COMMAND --help.
func TestHelpOfCommands(t *testing.T) {
	for _, command := range [][]string{nil, {"run"}, {"suite", "merge"}, {"help"}} {
		_, want, _ := chaos(append(command, "--help")...)
		code, stdout, stderr := chaos(append([]string{"help"}, command...)...)
		if code != exitSafe || stdout != want || stderr != "" {
			t.Errorf("chaos help %v: %d\n%s%s\nwant\n%s", command, code, stdout, stderr, want)
		}
	}
}

// TestPlotsInNewDirectory: a new name is a directory unless it has the extension of the plots.
func TestPlotsInNewDirectory(t *testing.T) {
	top := t.TempDir()
	if code, _, stderr := chaos("run", "--scenario", "contention", "--backend", "sim", "--seed", "1", "--out", top); code != exitSafe {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	for to, want := range map[string]string{
		"new": "new/latency.png", "v1.2": "v1.2/latency.png", "slash.png/": "slash.png/latency.png", "one.png": "one.png",
	} {
		code, stdout, stderr := chaos("report", filepath.Join(top, "latest"), "--format", "png", "--to", top+"/"+to)
		info, err := os.Stat(filepath.Join(top, want))
		if code != exitSafe || err != nil || info.IsDir() || (want != to) != strings.Contains(stdout, "latency.png\n") {
			t.Errorf("--to %s: exit code %d, %v\n%s%s", to, code, err, stdout, stderr)
		}
	}
}
