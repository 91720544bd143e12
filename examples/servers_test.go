package examples

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/scenarios"
)

// runOn runs s, checks its expectations, and returns the page.
func runOn(t *testing.T, s scenarios.Scenario, programs ...string) (checker.Judgement, string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: needs %s on the PATH", program)
		}
	}
	out := runSettled(t, s, "")
	for _, wrong := range unexpected(out) {
		t.Error(wrong)
	}
	run, err := reports.Load(out.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := reports.Render(run, "html", &page); err != nil {
		t.Fatal(err)
	}
	return out.Judgement, page.String()
}

// ownRedis is a Redis that the harness knows by its command line alone, and loses its data.
const ownRedis = `
summary: a server of your own restarts without its data while a client holds the lock
topology:
  kind: command
  run: redis-server --port {port.client} --bind {host} --dir {disk} --save '' --protected-mode no
  ready: {command: "redis-cli -e -h {host} -p {port.client} PING"}
lock: exec:python3 client.py
workload: {kind: mutex, clients: 3, hold: 4s, lease: 20s, wait: 10s}
faults:
  - {when: acquired, fault: restart-empty, target: n1}
duration: 9s
expect: unsafe, broken promise
name: own-server
`

// TestServerOfYourOwn: a lock is convicted on a server that the harness does not know; without a program that reads the
// locks there, the report says so instead of drawing rows of them.
func TestServerOfYourOwn(t *testing.T) {
	s, err := scenarios.Parse([]byte(ownRedis))
	if err != nil {
		t.Fatal(err)
	}
	j, page := runOn(t, s, "python3", "redis-server", "redis-cli")
	if j.Verdict != checker.Unsafe || !strings.Contains(page, "No rows LOCK AT: the topology has no program") {
		t.Errorf("%s: %s", j.Verdict, j.Sentence)
	}
	if strings.Contains(page, "no server of the run recorded it") {
		t.Error("the page speaks of records that were not read")
	}
}

// TestNATS: three NATS servers of which one is cut off, and a lock in their key-value store.
func TestNATS(t *testing.T) {
	t.Chdir("..")
	s, err := scenarios.Load("examples/servers/nats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	runOn(t, s, "python3", "nats-server")
}

// TestHazelcast: one of three members of Hazelcast's CP subsystem is killed while its FencedLock is held.
func TestHazelcast(t *testing.T) {
	race.SkipLong(t, "it starts three Java servers")
	t.Chdir("..")
	for _, file := range []string{"bin/hazelcast/hazelcast-5.3.8.jar", "bin/hazelcast/python/hazelcast"} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("NOT RUN: %v: scripts/hazelcast downloads it", err)
		}
	}
	s, err := scenarios.Load("examples/servers/hazelcast.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, page := runOn(t, s, "python3", "java"); strings.Contains(page, "could not be identified") {
		t.Error("a member that connects from the address that it announces is not recognized")
	}
}

// TestFileLock: a lock without servers. A process that is stopped keeps its lock.
func TestFileLock(t *testing.T) {
	t.Chdir("..")
	s, err := scenarios.Load("examples/servers/flock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	_, page := runOn(t, s, "python3")
	if !strings.Contains(page, "No rows KEY AT: the topology has no servers") {
		t.Error("the page does not say that there are no servers")
	}
}

// TestPostgreSQL: an advisory lock is lost with the connection of its session.
func TestPostgreSQL(t *testing.T) {
	if _, err := installed.Postgres(t.Context()); err != nil {
		t.Skipf("NOT RUN: %v", err)
	}
	t.Chdir("..")
	s, err := scenarios.Load("examples/servers/postgresql.yaml")
	if err != nil {
		t.Fatal(err)
	}
	runOn(t, s, "python3")
}
