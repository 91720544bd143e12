package docker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
)

// TestOneServer takes one container through everything that can be done to it.
func TestOneServer(t *testing.T) {
	c := up(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{
		"appendonly": "yes", "appendfsync": "always"}}, nil)
	ctx := t.Context()
	call(t, c, 0, 1).wantReply(t, "SET k v", "+OK")
	hasNoCapabilities(t, c)

	must(t, c.Kill(ctx, "n1"))
	must(t, c.Kill(ctx, "n1")) // may be called twice
	if s := c.Sample(ctx, "n1", nil); s.Up {
		t.Error("a killed node is up")
	}
	if err := c.Pause(ctx, "n1"); !errors.Is(err, cluster.ErrDown) {
		t.Errorf("pausing a killed node: %v, want ErrDown", err)
	}
	must(t, c.Restart(ctx, "n1"))
	call(t, c, 1, 1).wantReply(t, "STRLEN k", ":1") // its disk has it
	if err := c.Restart(ctx, "n1"); err == nil {
		t.Error("a running node was restarted")
	}
	must(t, c.Kill(ctx, "n1"))
	must(t, c.Wipe(ctx, "n1"))
	must(t, c.Restart(ctx, "n1"))
	call(t, c, 1, 1).wantReply(t, "STRLEN k", ":0")

	a := call(t, c, 2, 1)
	a.wantReply(t, "PING", "+PONG")
	must(t, c.Pause(ctx, "n1"))
	must(t, c.Pause(ctx, "n1"))
	a.send(t, "PING")
	if got := a.receive(100 * time.Millisecond); got != "silence" {
		t.Errorf("a paused server replied %q", got)
	}
	must(t, c.Resume(ctx, "n1"))
	if got := a.receive(patience); got != "+PONG" {
		t.Errorf("a resumed server replied %q", got)
	}
	must(t, c.Pause(ctx, "n1"))
	must(t, c.Kill(ctx, "n1")) // a paused one can be killed
	must(t, c.Restart(ctx, "n1"))
	call(t, c, 3, 1).wantReply(t, "PING", "+PONG")
	for what, err := range map[string]error{ // it was started without
		"clock": c.SetClock(ctx, "n1", cluster.Clock{Offset: time.Second}), "power": c.PowerOff(ctx, "n1"),
	} {
		if !errors.Is(err, cluster.ErrEnvironment) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if log, err := os.ReadFile(filepath.Join(c.launcher.servers[hostN1].log)); err != nil ||
		!strings.Contains(string(log), "Ready to accept connections") {
		t.Errorf("its log: %v\n%s", err, log)
	}
}

// hasNoCapabilities: a container has only the capabilities that a server needs, and labels of its run.
func hasNoCapabilities(t *testing.T, c *Cluster) {
	t.Helper()
	id := c.launcher.servers[hostN1].id
	r, err := c.launcher.engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	must(t, err)
	h, cfg := r.Container.HostConfig, r.Container.Config
	if h.Privileged || h.PublishAllPorts || len(h.CapAdd) > 0 || len(h.CapDrop) != 1 || h.CapDrop[0] != "ALL" {
		t.Errorf("its capabilities: %+v", h)
	}
	if cfg.Labels[runLabel] != c.launcher.run || cfg.Labels[machineLabel] == "" || len(r.Container.Mounts) != 2 {
		t.Errorf("its labels: %v, its mounts: %v", cfg.Labels, r.Container.Mounts)
	}
}

// TestDisconnectedServerHangs: connections hang and are not reset, while samples and
// admin commands arrive; after a reconnect the same connection continues.
func TestDisconnectedServerHangs(t *testing.T) {
	c := up(t, cluster.Topology{Kind: cluster.Replicated, Replicas: 1}, nil)
	ctx := t.Context()
	a := call(t, c, 0, 1)
	a.wantReply(t, "SET k 1", "+OK")
	must(t, c.Disconnect(ctx, "n1"))
	a.send(t, "APPEND k 2")
	if got := a.receive(200 * time.Millisecond); got != "silence" {
		t.Fatalf("a disconnected server replied %q", got)
	}
	if reply, err := c.Do(ctx, "n1", "SET", "alone", "1"); err != nil || reply != "OK" {
		t.Errorf("past the network: %v, %v", reply, err)
	}
	must(t, c.Reconnect(ctx, "n1"))
	if got := a.receive(patience); got != ":2" {
		t.Errorf("reconnected, it replied %q", got)
	}
	waitFor(t, "the replica to have the write", func() bool {
		reply, err := c.Do(ctx, "n2", "GET", "alone")
		return err == nil && reply == "1"
	})
	for _, err := range []error{c.Disconnect(ctx, "n7"), c.Reconnect(ctx, "n7")} {
		if !errors.Is(err, cluster.ErrNoNode) {
			t.Errorf("no such node: %v", err)
		}
	}
}

// TestGatedFailover loses a lock deterministically, as on loopback: gates distinguish
// replicas from clients, and Sentinels know only gates.
func TestGatedFailover(t *testing.T) {
	c := up(t, cluster.Topology{Kind: cluster.Sentinel}, nil)
	ctx := t.Context()
	for _, replica := range []string{"n2", "n3"} {
		must(t, c.SetRule(cluster.Link{From: replica, To: "n1"}, cluster.Back, cluster.Rule{Mode: cluster.Hold}))
	}
	call(t, c, 0, 1).wantReply(t, "SET lock A NX PX 60000", "+OK")
	waitFor(t, "the write to be held at both links", func() bool {
		n2, err2 := c.Traffic(cluster.Link{From: "n2", To: "n1"}, cluster.Back)
		n3, err3 := c.Traffic(cluster.Link{From: "n3", To: "n1"}, cluster.Back)
		return err2 == nil && err3 == nil && n2.Waiting > 0 && n3.Waiting > 0
	})
	must(t, c.Kill(ctx, "n1"))
	becomes(t, c, "n2", "master") // the lowest priority
	if keys := c.Sample(ctx, "n2", []string{"lock"}).Keys; len(keys) > 0 {
		t.Fatalf("the new master has %v, want it without the lock", keys)
	}
	call(t, c, 1, 2).wantReply(t, "SET lock B NX PX 60000", "+OK")
	if sentinels := c.Endpoints(0).Sentinels; len(sentinels) != 3 {
		t.Errorf("Sentinels %v", sentinels)
	}
}

// TestDisconnectedShardIsReplaced: the other nodes promote a replica of a disconnected
// master, which becomes a replica when it is reconnected.
func TestDisconnectedShardIsReplaced(t *testing.T) {
	c := up(t, cluster.Topology{Kind: cluster.Sharded}, nil)
	must(t, c.Disconnect(t.Context(), "n1"))
	becomes(t, c, "n4", "master")
	becomes(t, c, "n1", "master") // it does not know of n4
	must(t, c.Reconnect(t.Context(), "n1"))
	becomes(t, c, "n1", "slave")
}

// TestClockAndPower: a container reads the clock that was set, and loses unfsynced data.
func TestClockAndPower(t *testing.T) {
	needEngine(t)
	options := map[string]string{"appendonly": "yes", "appendfsync": "no"}
	c, err := Start(t.Context(), Config{
		Topology:     cluster.Topology{Kind: cluster.Single, Options: options},
		Requirements: cluster.Requirements{Clocks: wallclock.Missing() == "", Disks: process.MissingDisks() == ""},
	})
	must(t, err)
	t.Cleanup(func() {
		must(t, c.Close(t.Context()))
		checkRemoved(t, c.launcher.run)
	})
	a := call(t, c, 0, 1)
	a.wantReply(t, "SET k v PX 20000", "+OK")
	if why := wallclock.Missing(); why == "" {
		must(t, c.SetClock(t.Context(), "n1", cluster.Clock{Offset: time.Minute}))
		a.wantReply(t, "EXISTS k", ":0")
		must(t, c.SetClock(t.Context(), "n1", cluster.Clock{}))
	} else {
		t.Log("NOT RUN: clocks: ", why)
	}
	a.wantReply(t, "SET kept v", "+OK")
	want := ":1"
	if why := process.MissingDisks(); why == "" {
		must(t, c.PowerOff(t.Context(), "n1"))
		want = ":0"
	} else {
		t.Log("NOT RUN: power: ", why)
		must(t, c.Kill(t.Context(), "n1"))
	}
	must(t, c.Restart(t.Context(), "n1"))
	call(t, c, 1, 1).wantReply(t, "EXISTS kept", want)
}

// TestStartErrors: invalid configurations are reported, and leave nothing behind.
func TestStartErrors(t *testing.T) {
	needEngine(t)
	single := cluster.Topology{Kind: cluster.Single}
	for name, test := range map[string]struct {
		cfg  Config
		is   error
		says string
	}{
		"no image": {Config{Topology: single, Image: "lockchaos-none.invalid/none:1"}, cluster.ErrEnvironment,
			"make docker-image"},
		"option": {Config{Topology: cluster.Topology{Kind: cluster.Single, Options: map[string]string{"maxmemory": "lots"}}},
			cluster.ErrOption, "argument must be a memory"},
		"own option": {Config{Topology: cluster.Topology{Kind: cluster.Single, Options: map[string]string{"port": "1"}}},
			nil, "leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Run = "lockchaos-test-" + strings.ReplaceAll(name, " ", "-")
			c, err := Start(t.Context(), test.cfg)
			if err == nil {
				_ = c.Close(t.Context())
				t.Fatal("it was started")
			}
			if !strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %q, want %q in it, class %v", err, test.says, test.is)
			}
			checkRemoved(t, test.cfg.Run)
		})
	}
}

// TestNoEngine: the error names the remedy.
func TestNoEngine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	_, err := Start(t.Context(), Config{Topology: cluster.Topology{Kind: cluster.Single}})
	missing := (*EngineError)(nil)
	if !errors.As(err, &missing) || !errors.Is(err, cluster.ErrEnvironment) ||
		!strings.Contains(err.Error(), "docker.io") {
		t.Errorf("error %v", err)
	}
	if removed, err := RemoveOrphans(t.Context()); err != nil || len(removed) > 0 {
		t.Errorf("without an engine: %v, %v", removed, err)
	}
	t.Setenv("DOCKER_HOST", "nonsense")
	if _, err := Version(t.Context()); !errors.As(err, &missing) {
		t.Errorf("error %v", err)
	}
}

func TestSplitImage(t *testing.T) {
	for image, want := range map[string][2]string{
		"redis": {"redis", "latest"}, "redis:7.4": {"redis", "7.4"}, "host:5000/redis": {"host:5000/redis", "latest"},
		"host:5000/redis:8": {"host:5000/redis", "8"}, "redis@sha256:abc": {"redis@sha256", "abc"},
	} {
		if repository, tag := splitImage(image); [2]string{repository, tag} != want {
			t.Errorf("%s is split into %s and %s", image, repository, tag)
		}
	}
}
