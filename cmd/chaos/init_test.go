package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInit: the answers, from flags and from standard input, make a scenario that run accepts.
func TestInit(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		input string
		want  []string // in the dry run
	}{
		"flags": {flags: []string{"--lock", "redlock", "--topology", "quorum", "--fault", "restart", "--holds", "exclusion,leak"},
			want: []string{"lock: redlock", "restart", "kind: quorum", "exclusion:\n      outcome: holds", "leak:\n      outcome: holds", "name: flags"}},
		"questions": {input: "\nreentrent\nfair\nsentinel\nfailover\nall\n",
			want: []string{"lock: fair", "kind: sentinel", "failover", "expect: safe"}},
		"fallbacks": {input: "latch\n\n\n\n", want: []string{"lock: latch", "kind: single", "kind: latch"}},
		"both":      {flags: []string{"--fault", "none"}, input: "permits\ncluster\nleak, permits", want: []string{"permits:\n      outcome: holds"}},
		"own": {flags: []string{"--lock", `exec:sh "c #1.sh"`, "--topology", "sentinel"}, input: "\n\n",
			want: []string{`c #1.sh`}},
	} {
		path := filepath.Join(t.TempDir(), name+".yaml")
		var out, errs bytes.Buffer
		s := streams{in: strings.NewReader(c.input), out: &out, err: &errs}
		if code := run(append([]string{"init", path}, c.flags...), s); code != exitSafe {
			t.Errorf("%s: exit code %d\n%s", name, code, errs.String())
			continue
		}
		code, plan, stderr := chaos("run", "--scenario", path, "--dry-run")
		if code != exitSafe {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(plan, want) {
				t.Errorf("%s: no %q in\n%s", name, want, plan)
			}
		}
		if asks := strings.Contains(errs.String(), "Which lock"); asks != (c.flags == nil || name == "both") {
			t.Errorf("%s: it asks\n%s", name, errs.String())
		}
	}
}

// TestInitExpectsTheKept: no expectation is written that a correct lock cannot meet.
func TestInitExpectsTheKept(t *testing.T) {
	for _, lock := range []string{"reentrant", "set-nx-px"} {
		path := filepath.Join(t.TempDir(), "pause.yaml")
		if code, _, stderr := chaos("init", path, "--lock", lock, "--topology", "single", "--fault", "pause-client",
			"--holds", "all"); code != exitSafe {
			t.Fatal(stderr)
		}
		code, stdout, _ := chaos("run", "--scenario", path, "--backend", "sim", "--seed", "1", "--expect", "--out",
			t.TempDir())
		if code != exitSafe || !strings.HasPrefix(stdout, "UNSAFE (outlived lease)") {
			t.Errorf("%s: exit code %d\n%s", lock, code, stdout)
		}
	}
	for holds, want := range map[string]string{
		"fencing":   "--holds fencing: lock mutex cannot keep it here: the lock does not state fenced",
		"exclusion": "--holds exclusion: lock mutex cannot keep it here: class outlived lease",
		"latch":     "--holds latch: lock mutex cannot keep it here: the lock is no latch",
	} {
		code, _, stderr := chaos("init", filepath.Join(t.TempDir(), "x.yaml"), "--lock", "mutex", "--topology", "single",
			"--fault", map[bool]string{true: "pause-client", false: "none"}[holds == "exclusion"], "--holds", holds)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("--holds %s: exit code %d\n%s", holds, code, stderr)
		}
	}
}

// TestInitWritesNothing: nothing is written, and no file is changed, if an answer is missing or wrong.
func TestInitWritesNothing(t *testing.T) {
	dir := t.TempDir()
	existing := filepath.Join(dir, "existing.yaml")
	if err := os.WriteFile(existing, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	all := []string{"--lock", "reentrant", "--topology", "single", "--fault", "none", "--holds", "all"}
	for _, c := range []struct {
		file string
		args []string
		code int
		want string
	}{
		{"existing.yaml", all, exitUsage, "existing.yaml exists"},
		{"link.yaml", all, exitUsage, "link.yaml exists"},
		{"a.txt", all, exitUsage, "ends in .yaml"},
		{"no/dir.yaml", all, exitEnvironment, "no such file"},
		{"a.yaml", all[:6], exitUsage, "answer it with --holds"},
		{"a b.yaml", all, exitUsage, "cannot be a directory"},
		{"a.yaml", append(all, "--fault", "failover"), exitUsage, "it needs topology sentinel"},
		{"a.yaml", append(all, "--fautl", "kill"), exitUsage, "did you mean --fault?"},
	} {
		code, _, stderr := chaos(append([]string{"init", filepath.Join(dir, c.file)}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s %q: exit code %d\n%s", c.file, c.args, code, stderr)
		}
	}
	if text, err := os.ReadFile(existing); err != nil || string(text) != "mine" {
		t.Errorf("the existing file has %q (%v)", text, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("files: %v (%v)", files, err)
	}
}
