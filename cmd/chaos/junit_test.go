package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestSimulatedInCI: a pipeline that means to test real servers is warned, on standard error and in its JUnit file, if
// there are none.
func TestSimulatedInCI(t *testing.T) {
	race.Skip(t)
	t.Setenv("PATH", t.TempDir())
	for ci, want := range map[string]bool{"true": true, "": false} {
		t.Setenv("CI", ci)
		file := filepath.Join(t.TempDir(), "junit.xml")
		_, _, stderr := chaos("run", "--scenario", "contention", "--duration", "300ms", "--junit", file, "--out", t.TempDir())
		xml, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const warning = "warning: in CI, simulated servers instead of real ones: backend process cannot run this scenario"
		if strings.Contains(stderr, warning) != want || bytes.Contains(xml, []byte(warning)) != want {
			t.Errorf("CI=%q: want the warning: %v\n%s%s", ci, want, stderr, xml)
		}
		out := t.TempDir()
		_, _, stderr = chaos("suite", "contention", "--out", out)
		xml, err = os.ReadFile(filepath.Join(out, "junit.xml"))
		if err != nil {
			t.Fatal(err)
		}
		const rows = "warning: in CI, 1 of 1 run used simulated servers instead of real ones"
		if strings.Contains(stderr, rows) != want || bytes.Contains(xml, []byte(rows)) != want {
			t.Errorf("CI=%q: suite: want the warning: %v\n%s%s", ci, want, stderr, xml)
		}
	}
}

// TestJUnitOfMistakes: a mistake in the command line is an error of the case, too, and a JUnit file that cannot be
// written is reported beside it.
func TestJUnitOfMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"--clients must be positive": {"--clients", "0"},
		"--otlp":                     {"--otlp", "::"},
		"unknown scenario":           {"--scenario", "no-such-scenario"},
		"topology.options.Include":   {"--set", "topology.options.Include=/etc/passwd"},
	} {
		file := filepath.Join(t.TempDir(), "junit.xml")
		args = append([]string{"run", "--scenario", "contention", "--backend", "sim", "--out", t.TempDir(), "--junit", file}, args...)
		code, _, stderr := chaos(args...)
		xml, err := os.ReadFile(file)
		if code != exitUsage || err != nil || !bytes.Contains(xml, []byte("<error message=")) || !bytes.Contains(xml, []byte(want)) {
			t.Errorf("%v: exit code %d, %v\n%s%s", args, code, err, stderr, xml)
		}
	}
	folder := filepath.Join(t.TempDir(), "file", "junit.xml")
	if err := os.WriteFile(filepath.Dir(folder), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := chaos("run", "--scenario", "contention", "--clients", "0", "--junit", folder)
	if code != exitUsage || strings.Count(stderr, "chaos: ") != 2 || !strings.Contains(stderr, filepath.Dir(folder)) {
		t.Errorf("exit code %d, want both errors\n%s", code, stderr)
	}
}
