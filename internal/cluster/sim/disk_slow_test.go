package sim_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// slowDisk is a server with a disk that can be slow, simulated or real, and the observations.
type slowDisk struct {
	t *testing.T
	c interface {
		servers
		cluster.Disks
		cluster.SlowDisks
		cluster.Admin
	}
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	log  []string
}

func (s *slowDisk) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%v; so far: %q", err, s.log)
	}
}

func (s *slowDisk) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// endless is how long an fsync takes that only healing ends.
const endless = 10 * time.Minute

// command executes one and returns "replied" or, after two seconds, "waits".
func (s *slowDisk) command(words ...any) string {
	s.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.c.Nodes()[0].Addr, Dialer: s.dial, MaxRetries: -1, DialerRetries: 1,
		Password: s.c.Endpoints(0).Password, ReadTimeout: 2 * time.Second, Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	defer func() { _ = rdb.Close() }()
	switch err := rdb.Do(s.ctx, words...).Err(); {
	case err == nil:
		return "replied"
	case strings.Contains(err.Error(), "timeout"):
		return "waits"
	default:
		s.t.Error(words, err)
		return err.Error()
	}
}

// slow sets how long an fsync takes.
func (s *slowDisk) slow(each time.Duration) { s.must(s.c.SlowDisk(s.ctx, "n1", each)) }

// until polls done, in the time of the servers.
func (s *slowDisk) until(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(stepTimeout); !done(); {
		if time.Now().After(end) {
			s.t.Fatalf("%s did not happen; so far: %q", what, s.log)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // polls: a disk sends no event
	}
	s.note("%s", what)
}

// fsyncs is how many were delayed.
func (s *slowDisk) fsyncs() int {
	n, err := s.c.SlowFsyncs(s.ctx, "n1")
	s.must(err)
	return n
}

// persistence reports whether INFO has all of these lines.
func (s *slowDisk) persistence(lines ...string) bool {
	reply, err := s.c.Do(s.ctx, "n1", "INFO", "persistence")
	for _, line := range lines {
		if err != nil || !strings.Contains(fmt.Sprint(reply), line+"\r\n") {
			return false
		}
	}
	return true
}

// replies waits until the server replies to a command.
func (s *slowDisk) replies() {
	s.t.Helper()
	s.until("the server replies", func() bool { _, err := s.c.Do(s.ctx, "n1", "PING"); return err == nil })
}

// has notes which of the keys the server has.
func (s *slowDisk) has(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		n, err := s.c.Do(s.ctx, "n1", "EXISTS", key)
		s.must(err)
		s.note("%s: %v", key, n)
	}
}

// restart starts the server again, on a disk that is fast again.
func (s *slowDisk) restart() {
	s.t.Helper()
	s.slow(0)
	s.must(s.c.Restart(s.ctx, "n1"))
	s.until("the server has read its data", func() bool {
		_, err := s.c.Do(s.ctx, "n1", "EXISTS", "k")
		return err == nil
	})
}

// always: no command is replied to before the fsync is over, even if it writes nothing.
func (s *slowDisk) always() {
	s.note("written on a fast disk: %s", s.command("SET", "fast", "v"))
	s.slow(300 * time.Millisecond)
	began := time.Now()
	s.note("written on a slow disk: %s", s.command("SET", "slow", "v"))
	s.note("at least as late as the disk: %v, fsyncs: %d", time.Since(began) >= 300*time.Millisecond, s.fsyncs())
	s.slow(endless)
	s.note("read: %s", s.command("GET", "slow"))
	s.note("written: %s", s.command("SET", "healed", "v"))
	s.note("read meanwhile: %s", s.command("GET", "slow"))
	s.slow(0)
	s.replies()
	s.has("fast", "slow", "healed")
	s.note("written on a fast disk: %s, fsyncs: %d", s.command("SET", "after", "v"), s.fsyncs())
	s.slow(endless)
	s.note("written: %s", s.command("SET", "lost", "v"))
	s.must(s.c.PowerOff(s.ctx, "n1"))
	s.restart()
	s.has("fast", "slow", "healed", "after", "lost")
}

// everysec: writes during an fsync wait in memory, and block the server after a while.
func (s *slowDisk) everysec() {
	s.note("%s", s.command("SET", "fast", "v"))
	s.until("it is fsynced", func() bool { return s.persistence("aof_pending_bio_fsync:0", "aof_buffer_length:0") })
	s.slow(endless)
	writes := func(key string) func() bool {
		return func() bool { return s.command("SET", key, "v") == "replied" && s.fsyncs() > 0 }
	}
	s.until("an fsync begins", writes("first"))
	s.note("%s", s.command("SET", "postponed", "v"))
	s.note("it is in memory: %v", !s.persistence("aof_buffer_length:0") && s.persistence("aof_pending_bio_fsync:1"))
	s.until("a write blocks", func() bool { return s.command("SET", "more", "v") == "waits" })
	s.slow(0)
	s.replies()
	s.note("delayed by an fsync: %v, fsyncs: %d", s.persistence("aof_delayed_fsync:1"), s.fsyncs())
	s.has("fast", "first", "postponed", "more")
}

// ended: waiting writes in memory are lost with the process, and unfsynced ones with the power.
func (s *slowDisk) ended(end func(context.Context, string) error) {
	s.slow(endless)
	s.until("an fsync begins", func() bool { return s.command("SET", "first", "v") == "replied" && s.fsyncs() > 0 })
	s.note("%s", s.command("SET", "postponed", "v"))
	s.must(end(s.ctx, "n1"))
	s.restart()
	s.has("first", "postponed")
}

// no: the server never waits for the disk.
func (s *slowDisk) no() {
	s.slow(endless)
	began := time.Now()
	s.until("three seconds pass", func() bool {
		return s.command("SET", "k", "v") != "replied" || time.Since(began) > 3*time.Second
	})
	s.note("fsyncs: %d", s.fsyncs())
	s.must(s.c.Kill(s.ctx, "n1"))
	s.restart()
	s.has("k")
}

// slowScripts by name; the first word is the value of appendfsync.
var slowScripts = map[string]func(*slowDisk){
	"always":              (*slowDisk).always,
	"everysec":            (*slowDisk).everysec,
	"everysec, killed":    func(s *slowDisk) { s.ended(s.c.Kill) },
	"everysec, power cut": func(s *slowDisk) { s.ended(s.c.PowerOff) },
	"no":                  (*slowDisk).no,
}

// slowObserved are the observations of each script.
var slowObserved = map[string][]string{
	"always": {
		"written on a fast disk: replied", "written on a slow disk: replied",
		"at least as late as the disk: true, fsyncs: 1", "read: replied", "written: waits", "read meanwhile: waits",
		"the server replies", "fast: 1", "slow: 1", "healed: 1", "written on a fast disk: replied, fsyncs: 2",
		"written: waits", "the server has read its data", "fast: 1", "slow: 1", "healed: 1", "after: 1", "lost: 0",
	},
	"everysec": {
		"replied", "it is fsynced", "an fsync begins", "replied", "it is in memory: true", "a write blocks",
		"the server replies", "delayed by an fsync: true, fsyncs: 1", "fast: 1", "first: 1", "postponed: 1", "more: 1",
	},
	"everysec, killed":    {"an fsync begins", "replied", "the server has read its data", "first: 1", "postponed: 0"},
	"everysec, power cut": {"an fsync begins", "replied", "the server has read its data", "first: 0", "postponed: 0"},
	"no":                  {"three seconds pass", "fsyncs: 0", "the server has read its data", "k: 1"},
}

func slowTopology(script string) cluster.Topology {
	policy, _, _ := strings.Cut(script, ",")
	return cluster.Topology{Kind: cluster.Single, Options: map[string]string{"appendonly": "yes", "appendfsync": policy}}
}

func (s *slowDisk) observes(script string) {
	s.t.Helper()
	slowScripts[script](s)
	got, want := strings.Join(s.log, "\n"), strings.Join(slowObserved[script], "\n")
	if got != want {
		s.t.Errorf("observed:\n%s\n\nwant:\n%s", got, want)
	}
}

// TestSlowDisk: a simulated server behaves like the real one of TestRealSlowDisk.
func TestSlowDisk(t *testing.T) {
	for script := range slowScripts {
		t.Run(script, func(t *testing.T) {
			simulate(t, sim.Config{Topology: slowTopology(script), Password: "p"}, func(w *world) {
				s := &slowDisk{t: t, c: w.Cluster, ctx: w.ctx, dial: w.Client(0).Dial}
				s.observes(script)
			})
		})
	}
}

// TestRealSlowDisk: a real server does the same.
func TestRealSlowDisk(t *testing.T) {
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skip("NOT RUN: no real servers to compare with: ", err)
	}
	if why := process.MissingDisks(); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	for script := range slowScripts {
		t.Run(script, func(t *testing.T) {
			t.Parallel() // it is mostly waiting
			withServers(t, process.Config{Topology: slowTopology(script), Dir: t.TempDir(),
				Requirements: cluster.Requirements{Disks: true}}, func(c *process.Cluster) {
				var dialer net.Dialer
				s := &slowDisk{t: t, c: c, ctx: context.Background(), dial: dialer.DialContext}
				s.observes(script)
			})
		})
	}
}
