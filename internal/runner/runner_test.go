package runner

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

// asClient makes this test binary a native client, as chaos client is.
const asClient = "LOCKCHAOS_TEST_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		if err := client.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// clientCommand is the command of a native client.
func clientCommand(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"env", asClient + "=1", self}
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("NOT RUN: needs redis-server on the PATH (Debian, Ubuntu: apt-get install redis-server)")
	}
}

func load(t *testing.T, name string, set ...string) scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Load(name, set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(t *testing.T, s scenarios.Scenario) Options {
	t.Helper()
	return Options{
		Scenario: s, Seed: 1, Backend: processSpec.New(), Out: t.TempDir(), Client: clientCommand(t), Version: "test",
	}
}

// TestScenarios runs every named scenario on real servers and compares it with
// what it expects of itself.
func TestScenarios(t *testing.T) {
	needRedis(t)
	for _, name := range scenarios.Names() {
		t.Run(name, func(t *testing.T) {
			out, err := Run(context.Background(), options(t, load(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range checker.Unexpected(out.Judgement, out.Manifest.Expect) {
				t.Error(wrong)
			}
			if t.Failed() {
				t.Logf("%s: %s", out.Judgement.Verdict, out.Judgement.Sentence)
			}
			if out.Manifest.State != rundir.Complete {
				t.Errorf("state %s", out.Manifest.State)
			}
		})
	}
}
