package process

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// ownRedis are two Redis servers that the harness knows by their command line alone.
func ownRedis() cluster.Topology {
	return cluster.Topology{Kind: cluster.Command, Nodes: 2,
		Run: "redis-server --port {port.client} --bind {host} --dir {disk} --save '' --appendonly yes --protected-mode no",
	}
}

// TestCommandServers: servers of the user are started, killed, emptied and asked for their role and their locks, and
// the gates between them know who calls.
func TestCommandServers(t *testing.T) {
	top := ownRedis()
	top.Ready = &cluster.Readiness{Command: "redis-cli -e -h {host} -p {port.client} PING"}
	top.Env = map[string]string{"NODE": "{name}"}
	top.Role = &cluster.Program{Command: `sh -c 'redis-cli -h {host} -p {port.client} ROLE | head -n 1'`}
	top.Sample = &cluster.Program{Command: `sh -c 'owner=$(redis-cli -h {host} -p {port.client} GET "$1"); ` +
		`echo "{\"$1\":{\"owner\":\"$owner\",\"owners\":[\"$NODE\"],\"ttl_ms\":1500}}"' sh`}
	c := up(t, top)
	ctx := t.Context()
	wantReply(t, dialFrom(t, c, 0, "n1"), "SET orders a", "OK")
	want := history.KeyState{Owner: "a", Owners: []string{"n1"}, TTL: 1500 * time.Millisecond}
	if s := look(t, c, "n1", "orders"); s.Role != "master" || !sameHold(s.Keys["orders"], want) {
		t.Errorf("%+v", s)
	}
	if passed, err := c.Traffic(cluster.Link{From: "client:0", To: "n1"}, cluster.Forward); err != nil || passed.Passed == 0 {
		t.Errorf("traffic of client 0: %+v, %v", passed, err)
	}
	host, port, _ := strings.Cut(c.Nodes()[0].Addr, ":")
	wantReply(t, dialFrom(t, c, 1, "n2"), "REPLICAOF "+host+" "+port, "OK") // n2 calls n1
	waitFor(t, "n2 to have called n1", func() bool {
		called, err := c.Traffic(cluster.Link{From: "n2", To: "n1"}, cluster.Forward)
		return err == nil && called.Passed > 0
	})
	waitFor(t, "n2 to be a replica", func() bool { return c.Sample(ctx, "n2", nil).Role == "slave" })
	must(t, c.Kill(ctx, "n1"))
	if s := c.Sample(ctx, "n1", []string{"orders"}); s.Up {
		t.Errorf("killed, but %+v", s)
	}
	must(t, c.Restart(ctx, "n1"))
	wantReply(t, dialFrom(t, c, 2, "n1"), "GET orders", "a")
	must(t, errors.Join(c.Kill(ctx, "n1"), c.Wipe(ctx, "n1"), c.Restart(ctx, "n1")))
	wantReply(t, dialFrom(t, c, 3, "n1"), "GET orders", nil)
}

func sameHold(a, b history.KeyState) bool {
	return a.Owner == b.Owner && len(a.Owners) == 1 && a.Owners[0] == b.Owners[0] && a.TTL == b.TTL
}

// TestCommandWithoutPrograms: without programs that print them, the role of one of several servers and the holders of
// locks are unknown; a server is up while its process runs.
func TestCommandWithoutPrograms(t *testing.T) {
	top := ownRedis()
	top.Ready = &cluster.Readiness{Log: "eady to accept connections"}
	c := up(t, top)
	wantReply(t, dialFrom(t, c, 0, "n1"), "SET orders a", "OK")
	if s := c.Sample(t.Context(), "n1", []string{"orders"}); !s.Up || s.Role != "" || s.Keys != nil {
		t.Errorf("%+v", s)
	}
	must(t, c.Pause(t.Context(), "n1"))
	if s := c.Sample(t.Context(), "n1", nil); s.Up {
		t.Errorf("paused, but %+v", s)
	}
	must(t, c.Resume(t.Context(), "n1"))
}

// TestCommandClock: a server of the user reads a clock that is set, and programs that ask it do not.
func TestCommandClock(t *testing.T) {
	top := ownRedis()
	top.Nodes, top.Clock = 1, &cluster.Program{Command: `sh -c 'printf %d.%06d $(redis-cli -h {host} -p {port.client} TIME)'`}
	c := startWith(t, top, cluster.Requirements{Clocks: true})
	must(t, c.SetClock(t.Context(), "n1", cluster.Clock{Offset: 24 * time.Hour}))
	for program, want := range map[string]time.Duration{top.Clock.Command: 24 * time.Hour, "date +%s": 0} {
		c.topology.Clock = &cluster.Program{Command: program}
		if ahead, err := c.ReadClock(t.Context(), "n1"); err != nil || (ahead-want).Abs() > time.Hour {
			t.Errorf("%s: %v ahead, want %v: %v", program, ahead, want, err)
		}
	}
	c.topology.Clock = &cluster.Program{Command: "echo noon"}
	if _, err := c.ReadClock(t.Context(), "n1"); err == nil {
		t.Error("noon is a time")
	}
}

// TestCommandFails: a server that ends, and a program that is missing, are named with the end of the log.
func TestCommandFails(t *testing.T) {
	for run, want := range map[string]string{
		"no-such-server --port {port.client}": "topology.run",
		"sh -c 'echo no license; exit 3'":     "no license",
	} {
		_, err := Start(t.Context(), Config{Topology: cluster.Topology{Kind: cluster.Command, Run: run}})
		if !errors.Is(err, cluster.ErrEnvironment) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", run, err)
		}
	}
}

// TestCommandReady: a page that is not found is not ready, nor is a log without the text.
func TestCommandReady(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	if err := getOK(t.Context(), server.URL+"/ready"); err != nil {
		t.Error(err)
	}
	if err := getOK(t.Context(), server.URL+"/other"); err == nil {
		t.Error("404 is ready")
	}
	file := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(file, []byte("it is up\n"), 0o600))
	if logContains(file, "is up") != nil || logContains(file, "is down") == nil {
		t.Error("the log")
	}
}

// TestCommandHangs: a program that does not end is ended.
func TestCommandHangs(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	c := commandSoftware{&Cluster{topology: cluster.Topology{Kind: cluster.Command, Nodes: 1, Run: "x"}}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.output(ctx, &server{Host: Host{I: 1}, dir: t.TempDir()}, "sleep 600", nil); err == nil {
		t.Error("no error")
	}
}
