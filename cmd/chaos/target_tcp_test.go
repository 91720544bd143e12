package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

const tcpScenario = `
name: any-server
summary: faults at the run's own clients and connections
topology: {kind: single}
lock: exec:python3 ../../examples/client.py
workload: {clients: 3, hold: 30ms, lease: 2m, wait: 1m}
faults:
  - {after: 100ms, fault: latency, target: all, amount: 5ms, for: 300ms}
  - {after: 500ms, fault: partition, target: n1, for: 200ms}
  - {after: 800ms, when: acquired, fault: pause-client, target: holder, for: 200ms}
duration: 1500ms
`

// TestTargetOfAnyKind runs on a server of which nothing is known but its address: a Redis without a password. Names of
// locks have the prefix of the run, and the page says which rows it lacks.
func TestTargetOfAnyKind(t *testing.T) {
	needRedis(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT RUN: needs python3 on the PATH")
	}
	server, err := process.Start(t.Context(), process.Config{Dir: t.TempDir(), Topology: cluster.Topology{
		Kind: cluster.Command,
		Run:  "redis-server --port {port.client} --bind {host} --dir {disk} --save '' --protected-mode no",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	url, out := "tcp://"+server.Nodes()[0].Addr, t.TempDir()
	run := func() (int, string, string) {
		return chaos("run", "--scenario", writeScenario(t, tcpScenario), "--seed", "1", "--out", out, "--target", url)
	}
	code, stdout, stderr := run()
	dir := filepath.Join(out, rundir.Latest)
	for try := 1; grantsIn(t, dir) == 0 && rerun.Again(t, try, dir); try++ {
		code, stdout, stderr = run()
	}
	if code != exitSafe && code != exitInconclusive || grantsIn(t, dir) == 0 ||
		!strings.Contains(stdout, "--target "+url) {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	h, err := history.ReadFile(filepath.Join(dir, rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range h.Spans {
		if !strings.HasPrefix(h.Keys[span.Key], cluster.AllPrefixes) {
			t.Fatalf("lock %q has no prefix", h.Keys[span.Key])
		}
	}
	page := readFile(t, filepath.Join(dir, rundir.ReportFile))
	if !strings.Contains(page, "No rows LOCK AT: the run did not start the servers") {
		t.Error("the page does not say that nothing shows who holds locks")
	}
}

// TestTargetOfAnyKindRefuses: each mistake is refused with its reason, and an environment without the server is no
// mistake.
func TestTargetOfAnyKindRefuses(t *testing.T) {
	const closed = "127.0.0.1:1" // a port below 1024, where no test listens
	const two = "run --target tcp://h:1,h:2 --set topology.kind=zookeeper --set faults="
	path := writeScenario(t, tcpScenario)
	for _, test := range []struct {
		code int
		want string // in standard error
		args string
	}{
		{exitEnvironment, "connecting to " + closed, "run --target tcp://" + closed},
		{exitUsage, "address 1 is not HOST:PORT", "run --target tcp://localhost"},
		{exitUsage, "use redis, rediss, sentinel, cluster or tcp", "run --target http://h:1"},
		{exitUsage, "--target-ca is for Redis", "run --target-ca x --target tcp://h:1"},
		{exitUsage, "is for topology sentinel", "run --target tcp://h:1 --set topology.kind=sentinel"},
		{exitUsage, "which the run did not start", "run --target tcp://h:1 --set faults[0]={fault: restart}"},
		{exitUsage, "no gates", two + "[{fault: partition, target: n1>n2}]"},
		{exitUsage, "name a server, such as n1", two + "[{fault: partition, target: leader}]"},
		{exitUsage, "does not run on topology command", "run --target tcp://h:1 --lock mutex"},
		{exitUsage, "cannot remove keys", "clean --prefix lockchaos:ab12cd34ef: --target tcp://h:1"},
	} {
		parts := strings.Split(test.args, " --set ")
		words := strings.Fields(parts[0])
		if words[0] == "run" {
			words = append(words, "--scenario", path, "--out", t.TempDir())
		}
		for _, set := range parts[1:] {
			words = append(words, "--set", set)
		}
		if code, _, stderr := chaos(words...); code != test.code || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: %d, want %d and %q:\n%s", test.args, code, test.code, test.want, stderr)
		}
	}
}
