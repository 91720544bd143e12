package locktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Run holds the lock to the table of behaviour, one subtest for each line. It
// needs redis-server on the PATH.
func Run(t *testing.T, s Spec) {
	t.Helper()
	if s.Open == nil || s.Held == nil || s.Lost == nil {
		t.Fatal("a lock under test needs Open, Held and Lost")
	}
	b := set(t, s)
	for _, c := range table() {
		t.Run(c.name, func(t *testing.T) {
			if c.needs != nil && !c.needs(s) {
				t.Skip("the lock does not claim it")
			}
			for _, p := range b.proxies {
				p.Lose(0, "")
			}
			name := "locktest-" + c.name
			c.run(t, &scene{bench: b, spec: s, name: name, a: b.open(t), b: b.open(t)})
			b.wipe()
		})
	}
}

// behaviour is one line of the table.
type behaviour struct {
	name  string
	needs func(Spec) bool // nil: of every lock
	run   func(t *testing.T, s *scene)
}

// bench is the servers that a lock lives on.
type bench struct {
	spec    Spec
	direct  []*redis.Client // to each master, past its proxy
	proxies []*Proxy
	addrs   []string // what Open is given
}

// scene is what one line of the table has: a lock of its own, and two programs.
type scene struct {
	bench *bench
	spec  Spec
	name  string
	a, b  Locker
}

func set(t *testing.T, s Spec) *bench {
	t.Helper()
	b := &bench{spec: s}
	n := 1
	if s.Topology == Quorum {
		n = 3
	}
	for range n {
		var args []string
		if s.Topology == Cluster {
			_, bus, _ := net.SplitHostPort(FreeAddr(t))
			args = []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", bus}
		}
		server := StartServer(t, args...)
		p := StartProxy(t, server.Addr)
		b.direct, b.proxies = append(b.direct, server.Dial(t)), append(b.proxies, p)
		b.addrs = append(b.addrs, p.Addr)
	}
	switch s.Topology {
	case Sentinel:
		b.addrs = []string{startSentinel(t, b.addrs[0])}
	case Cluster:
		formCluster(t, b.direct[0], b.addrs[0])
	}
	return b
}

// formCluster gives one server all slots and has it tell clients the address of its proxy.
func formCluster(t *testing.T, rdb *redis.Client, addr string) {
	t.Helper()
	ctx := context.Background()
	_, port, _ := net.SplitHostPort(addr)
	if err := rdb.ConfigSet(ctx, "cluster-announce-port", port).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, patience, "the cluster is up", func() bool {
		return strings.Contains(rdb.ClusterInfo(ctx).Val(), "cluster_state:ok")
	})
}

// startSentinel starts a Sentinel that knows the master at addr as m.
func startSentinel(t *testing.T, addr string) string {
	t.Helper()
	host, masterPort, _ := net.SplitHostPort(addr)
	return start(t, func(port string) []string {
		conf := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor m %s %s 1\n",
			port, filepath.Dir(conf), host, masterPort)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{conf, "--sentinel"}
	}).Addr
}

// open makes a Locker that is closed with t.
func (b *bench) open(t *testing.T) Locker {
	t.Helper()
	l := b.spec.Open(t, b.addrs)
	t.Cleanup(func() { shut(t, l) })
	return l
}

func shut(t *testing.T, l Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// wipe removes every key.
func (b *bench) wipe() {
	for _, rdb := range b.direct {
		rdb.FlushAll(context.Background())
	}
}

// each runs what on every master.
func (b *bench) each(t *testing.T, what string, args ...any) {
	t.Helper()
	for _, rdb := range b.direct {
		if err := rdb.Do(context.Background(), args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// losses is how many answers the proxies have kept back so far.
func (b *bench) losses() int {
	n := 0
	for _, p := range b.proxies {
		n += len(p.Lost)
	}
	return n
}

// conns is how many connections there are to the servers.
func (b *bench) conns() int {
	n := 0
	for _, p := range b.proxies {
		n += p.open()
	}
	return n
}

// rest is what is at the servers and is not what the lock says that it keeps.
func (s *scene) rest() []string {
	var keeps []string
	if s.spec.Keeps != nil {
		keeps = s.spec.Keeps(s.name)
	}
	var out []string
	for i, rdb := range s.bench.direct {
		keys, err := rdb.Keys(context.Background(), "*").Result()
		if err != nil {
			return []string{err.Error()}
		}
		for _, key := range keys {
			if !kept(key, keeps) {
				out = append(out, "master "+strconv.Itoa(i+1)+": "+key)
			}
		}
	}
	return out
}

func kept(key string, patterns []string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, key); ok && err == nil {
			return true
		}
	}
	return false
}
