package examples

import (
	"flag"
	"os/exec"
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/scenarios"
)

var every = flag.Bool("every", false, "TestSameVerdicts: run every story of its table (four minutes)")

// TestSameVerdicts: a Redis that the harness knows by its command line alone gives the verdicts of topology single,
// with the same lock. Without -every, two stories run: a safe one and an unsafe one.
func TestSameVerdicts(t *testing.T) {
	for _, program := range []string{"python3", "redis-server", "redis-cli"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: needs %s on the PATH", program)
		}
	}
	programs := ""
	if *every { // twenty processes a second
		programs = ", sample: {command: \"python3 {here}/testdata/redis_sample.py {host} {port.client}\"}, " +
			"clock: {command: \"sh -c 'printf %d.%06d $(redis-cli -h {host} -p {port.client} TIME)'\"}"
	}
	for _, story := range []struct{ name, options string }{
		{"gc-pause", ""}, {"reply-lost-release", ""},
		{"gc-pause-replies", ""}, {"overstayed-lease", ""}, {"partitioned-holder", ""}, {"reply-lost-acquire", ""},
		{"setnx-crash", ""}, {"silent-connections", ""}, {"compare-and-delete", ""}, {"mixed", ""}, {"plain-del", ""},
		{"release-unwatched", ""}, {"clock-jump", ""},
		{"expiry-while-down", "--appendonly yes --appendfsync always"},
		{"server-down", "--appendonly yes --appendfsync always"},
		{"power-loss-single", "--appendonly yes --appendfsync no"},
	} {
		t.Run(story.name, func(t *testing.T) {
			if !*every && !slices.Contains([]string{"gc-pause", "reply-lost-release"}, story.name) {
				t.Skip("NOT RUN: needs -every")
			}
			if !*every {
				t.Parallel()
			}
			own := "topology={kind: command, run: \"redis-server --port {port.client} --bind {host} --dir {disk} --save '' " +
				"--protected-mode no " + story.options + "\"" + programs + "}"
			const lock = "lock='exec:python3 client.py'"
			want, got := verdict(t, story.name, lock), verdict(t, story.name, lock, own)
			if want != got {
				t.Errorf("%s on topology single, and %s on topology command", want, got)
			}
		})
	}
}

// verdict is that of a story with these overrides.
func verdict(t *testing.T, name string, set ...string) checker.Verdict {
	t.Helper()
	s, err := scenarios.Load(name, scenarios.Sets(set)...)
	if err != nil {
		t.Fatal(err)
	}
	return runSettled(t, s, "").Judgement.Verdict
}
