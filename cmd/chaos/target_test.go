package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

// recorder relays to a server and records every command that reaches it.
type recorder struct {
	addr string

	mu       sync.Mutex
	commands [][]string
}

func newRecorder(t *testing.T, to string) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &recorder{addr: l.Addr().String()}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go r.relay(from, to)
		}
	}()
	return r
}

func (r *recorder) relay(from net.Conn, to string) {
	defer from.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(from, server)
		from.Close()
	}()
	in := bufio.NewReader(from)
	for {
		command, err := resp.Read(in)
		if err != nil {
			return
		}
		var words []string
		for _, word := range command.([]any) {
			words = append(words, word.(string))
		}
		r.mu.Lock()
		r.commands = append(r.commands, words)
		r.mu.Unlock()
		if _, err := server.Write(resp.AppendStrings(nil, words...)); err != nil {
			return
		}
	}
}

// keysOf are the keys in a command, and whether a run may send it to a server that it did not start.
func keysOf(words []string) (keys []string, allowed bool) {
	switch strings.ToUpper(words[0]) {
	case "HELLO", "AUTH", "PING", "ROLE", "QUIT", "CLIENT", "UNSUBSCRIBE":
		return nil, words[0] != "CLIENT" || strings.EqualFold(words[1], "SETINFO") || strings.EqualFold(words[1], "SETNAME")
	case "INFO":
		return nil, len(words) == 2 && words[1] == "server"
	case "SCRIPT":
		return nil, strings.EqualFold(words[1], "LOAD")
	case "SCAN":
		return words[3:4], true
	case "GET", "HGETALL", "PTTL", "UNLINK", "SUBSCRIBE", "PUBLISH", "SET", "DEL":
		return words[1:2], true
	case "EVAL", "EVALSHA":
		n := int(words[2][0] - '0')
		return words[3 : 3+n], true
	}
	return nil, false
}

const gentleScenario = `
name: gentle
summary: faults at the run's own clients and connections
topology: {kind: single}
lock: fenced
workload: {clients: 4, hold: 30ms, lease: 2s, wait: 1s}
faults:
  - {after: 100ms, fault: latency, target: all, amount: 5ms, for: 300ms}
  - {after: 500ms, fault: connection-reset, for: 100ms}
  - {after: 700ms, fault: partition, target: master, for: 200ms}
  - {after: 1000ms, when: acquired, fault: pause-client, target: holder, for: 200ms}
  - {after: 1400ms, fault: message-lost, for: 300ms}
  - {after: 1800ms, when: acquired, fault: client-crash, target: holder}
duration: 2500ms
`

// TestTarget runs on a server that it did not start: a proxy records the requests, the server's other keys stay, and
// the run's keys are gone.
func TestTarget(t *testing.T) {
	needRedis(t)
	servers := startTarget(t, cluster.Single)
	if _, err := servers.Do(t.Context(), "n1", "SET", "theirs", "1"); err != nil {
		t.Fatal(err)
	}
	proxy := newRecorder(t, servers.Nodes()[0].Addr)
	setPasswords(t, servers)
	out := t.TempDir()
	run := func() (int, string, string) {
		return chaos("run", "--scenario", writeScenario(t, gentleScenario), "--seed", "1", "--out", out,
			"--target", "redis://"+proxy.addr)
	}
	code, stdout, stderr := run()
	dir := filepath.Join(out, rundir.Latest)
	for try := 1; grantsIn(t, dir) == 0 && rerun.Again(t, try, dir); try++ {
		code, stdout, stderr = run()
	}
	if code != exitSafe && code != exitInconclusive && code != exitUnsafe || !strings.Contains(stdout, "grants") {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	if _, left := os.LookupEnv(passwordVariable); left {
		t.Error("clients inherit the password")
	}
	noSecret(t, out, stdout+stderr, servers.Endpoints(0).Password)
	scripts := 0
	for _, words := range proxy.commands {
		keys, allowed := keysOf(words)
		if !allowed {
			t.Errorf("a forbidden command reached the target: %q", words)
		}
		for _, key := range keys {
			if !strings.Contains(key, cluster.AllPrefixes) {
				t.Errorf("%q has a key without the prefix of the run", words)
			}
		}
		if strings.HasPrefix(words[0], "EVAL") || strings.HasPrefix(words[0], "eval") {
			scripts++
		}
	}
	if grants := grantsIn(t, dir); grants == 0 || scripts < grants {
		t.Errorf("%d scripts for %d grants: the proxy was not in the way", scripts, grants)
	}
	if keys := keysAt(t, servers); !slices.Equal(keys, []string{"theirs"}) {
		t.Errorf("the run has left %q", keys)
	}
}

// grantsIn counts the grants of a run.
func grantsIn(t *testing.T, dir string) (n int) {
	t.Helper()
	h, err := history.ReadFile(filepath.Join(dir, rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range h.Spans {
		if span.Op == history.OpAcquire && span.Outcome == history.OK {
			n++
		}
	}
	return n
}

// startTarget starts servers in place of a user's.
func startTarget(t *testing.T, kind string) *process.Cluster {
	t.Helper()
	c, err := process.Start(t.Context(), process.Config{Topology: cluster.Topology{Kind: kind}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// setPasswords sets the variables of the next command; it removes them.
func setPasswords(t *testing.T, c *process.Cluster) {
	t.Helper()
	t.Setenv(passwordVariable, c.Endpoints(0).Password)
	t.Setenv(sentinelPasswordVariable, c.Endpoints(0).Password)
}

// noSecret checks the output and every file of a run.
func noSecret(t *testing.T, dir, output, secret string) {
	t.Helper()
	if strings.Contains(output, secret) {
		t.Errorf("the output has the password:\n%s", output)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s has the password", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// keysAt are all keys of the masters.
func keysAt(t *testing.T, c *process.Cluster) (keys []string) {
	t.Helper()
	for _, n := range c.Nodes() {
		conn, err := net.Dial("tcp", n.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for _, words := range [][]string{{"AUTH", c.Endpoints(0).Password}, {"ROLE"}, {"KEYS", "*"}} {
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Write(resp.AppendStrings(nil, words...)); err != nil {
				t.Fatal(err)
			}
			reply, err := resp.Read(in)
			if err != nil {
				t.Fatal(err)
			}
			items, _ := reply.([]any)
			if words[0] == "ROLE" && items[0] != "master" {
				break
			}
			for _, item := range items {
				if words[0] == "KEYS" {
					keys = append(keys, item.(string))
				}
			}
		}
	}
	return keys
}

const failoverScenario = `
name: asked-failover
summary: an operator's failover while clients use a lock
topology: {kind: KIND}
lock: reentrant
workload: {clients: 3, keys: 3, hold: 50ms, lease: 2s}
faults:
  - {after: 300ms, fault: FAULT}
duration: 4s
`

// TestTargetFailover: Sentinels and clusters announce addresses of their own, and clients reach them through the gates
// before and after a failover.
func TestTargetFailover(t *testing.T) {
	needRedis(t)
	for _, row := range []struct{ kind, fault, url string }{
		{cluster.Sentinel, "failover", "sentinel://"},
		{cluster.Sharded, "cluster-failover", "cluster://"},
	} {
		t.Run(row.kind, func(t *testing.T) {
			if testing.Short() && row.kind == cluster.Sharded {
				t.Skip("SKIPPED with -short: Sentinel's failover takes the same path, but for the command")
			}
			path := writeScenario(t, strings.NewReplacer("KIND", row.kind, "FAULT", row.fault).Replace(failoverScenario))
			for try := 1; ; try++ {
				servers := startTarget(t, row.kind) // a Sentinel refuses a failover soon after another
				url := row.url + servers.Nodes()[0].Addr
				if row.kind == cluster.Sentinel {
					url = row.url + servers.Endpoints(0).Sentinels[0] + "/" + servers.Endpoints(0).MasterName
				}
				dir, failedOver := runFailover(t, servers, "--scenario", path, "--target", url)
				if dir == "" && rerun.Because(t, try, "the masters counted their replicas as failed") {
					continue
				}
				if keys := keysAt(t, servers); keys != nil {
					t.Errorf("the run has left %q", keys)
				}
				if failedOver {
					break
				}
				if !rerun.Again(t, try, dir) {
					t.Fatal("no failover, or no operation after it")
				}
			}
		})
	}
}

// runFailover runs a failover at a target, once without and once with permission, and says whether it took effect and
// an operation succeeded after it. Without a replica there is no run, and dir is empty.
func runFailover(t *testing.T, servers *process.Cluster, args ...string) (dir string, failedOver bool) {
	t.Helper()
	out := t.TempDir()
	args = append([]string{"run", "--seed", "1", "--out", out}, args...)
	setPasswords(t, servers)
	if code, _, stderr := chaos(args...); code != exitUsage || !strings.Contains(stderr, "needs --allow failover") {
		t.Fatalf("without --allow: %d %s", code, stderr)
	}
	setPasswords(t, servers)
	code, stdout, stderr := chaos(append(args, "--allow", "failover")...)
	if strings.Contains(stderr, "has no replica") {
		return "", false
	}
	if code == exitUsage || code == exitEnvironment || code == exitInternal {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	dir = filepath.Join(out, rundir.Latest)
	events, err := os.ReadFile(filepath.Join(dir, rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	_, after, effect := bytes.Cut(events, []byte(`"phase":"effect"`))
	return dir, effect && bytes.Contains(after, []byte(`"type":"ok"`))
}

// TestTargetRefuses: actions that could harm servers, or are not available there, are refused before a connection is
// made.
func TestTargetRefuses(t *testing.T) {
	const nowhere = "redis://127.0.0.1:1"
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--scenario", "flushall", "--target", nowhere}, exitUsage, "fault flushall of flushall"},
		{[]string{"--scenario", "failover", "--target", nowhere}, exitUsage, "the scenario is for topology sentinel"},
		{[]string{"--scenario", "failover", "--target", "sentinel://127.0.0.1:1"}, exitUsage, "fault replication-hold"},
		{[]string{"--scenario", "contention", "--target", "redis://u:p@h"}, exitUsage, passwordVariable},
		{[]string{"--scenario", "contention", "--target", nowhere}, exitEnvironment, "connection refused"},
		{[]string{"--scenario", "contention", "--target", "redis://me@127.0.0.1:1"}, exitEnvironment, "no password"},
		{[]string{"--scenario", "contention", "--target", nowhere, "--backend", "sim"}, exitUsage, "exclude each other"},
		{[]string{"--scenario", "contention", "--target", nowhere, "--allow", "kill"}, exitUsage, `"kill" is not failover`},
		{[]string{"--scenario", "contention", "--target", nowhere, "--target-ca", "x"}, exitUsage, "TLS"},
		{[]string{"--scenario", "contention", "--target", nowhere, "--set", "topology.options.save=1 1"}, exitUsage,
			"cannot be set"},
		{[]string{"--scenario", "failover", "--target", "sentinel://127.0.0.1:1", "--set", "topology.sentinel_quorum=1"},
			exitUsage, "topology.sentinel_quorum cannot be set"},
	} {
		code, _, stderr := chaos(append([]string{"run", "--out", t.TempDir()}, row.args...)...)
		if code != row.code || !strings.Contains(stderr, row.want) {
			t.Errorf("%v: %d %s, want %d %s", row.args, code, stderr, row.code, row.want)
		}
	}
}
