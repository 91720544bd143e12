package locktest

import (
	"context"
	"errors"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Run tests the lock for every behavior that s claims, one subtest each. It skips the test without redis-server on
// the PATH, unless the lock has other servers.
func Run(t *testing.T, s Spec) {
	t.Helper()
	if s.Open == nil || s.ErrHeld == nil || s.ErrLost == nil {
		t.Fatal("locktest.Spec: Open, ErrHeld and ErrLost are required")
	}
	sv := startServers(t, s)
	behaviors := slices.Concat(happyPath(), holdEnds())
	if s.Servers == nil {
		behaviors = slices.Concat(behaviors, faults(), refusals(), clusters(), clients(), crowds())
	}
	for _, b := range behaviors {
		t.Run(b.name, func(t *testing.T) {
			if b.needs != nil && !b.needs(s) {
				t.Skip("the lock does not claim it")
			}
			for _, p := range sv.proxies {
				p.DropReplies(0)
			}
			name := "locktest-" + b.name
			b.run(t, &fixture{servers: sv, spec: s, name: name, a: sv.open(t), b: sv.open(t)})
			sv.flush()
		})
	}
}

// behavior is one row of the table.
type behavior struct {
	name  string
	needs func(Spec) bool // nil: every lock must have it
	run   func(t *testing.T, s *fixture)
}

func leased(s Spec) bool      { return s.Lease > 0 && !s.AlwaysRenews }
func reportsLoss(s Spec) bool { return s.ReportsLoss && s.Servers == nil } // they flush and hold Redis
func renews(s Spec) bool      { return s.Renews }
func fenced(s Spec) bool      { return s.Fenced }
func reentrant(s Spec) bool   { return s.Reentrant }
func idempotent(s Spec) bool  { return s.Idempotent }

// servers are the servers of a lock under test.
type servers struct {
	spec    Spec
	masters []*Server
	direct  []*redis.Client // to each master, without its proxy
	proxies []*Proxy
	other   Servers  // nil: Redis
	addrs   []string // for Open
}

// fixture is the fixture of one behavior: a lock and two clients.
type fixture struct {
	servers *servers
	spec    Spec
	name    string
	a, b    Locker
}

func startServers(t *testing.T, s Spec) *servers {
	t.Helper()
	b := &servers{spec: s}
	if s.Servers != nil {
		b.other = s.Servers(t)
		b.addrs = b.other.Addrs()
		return b
	}
	n := 1
	if s.Topology == Quorum || s.Topology == Cluster {
		n = 3
	}
	var buses []string
	for range n {
		var args []string
		if s.Topology == Cluster {
			_, bus, _ := net.SplitHostPort(FreeAddr(t))
			buses = append(buses, bus)
			args = []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", bus}
		}
		server := StartServer(t, args...)
		p := StartProxy(t, server.Addr)
		b.masters, b.direct, b.proxies = append(b.masters, server), append(b.direct, server.Dial(t)), append(b.proxies, p)
		b.addrs = append(b.addrs, p.Addr)
	}
	switch s.Topology {
	case Sentinel:
		b.addrs = []string{StartSentinel(t, b.addrs[0]).Addr}
	case Cluster:
		b.formCluster(t, buses)
	}
	return b
}

const slots = 16384

// formCluster divides the slots among the servers, which listen to each other at the ports buses and announce the
// addresses of their proxies.
func (b *servers) formCluster(t *testing.T, buses []string) {
	t.Helper()
	ctx := context.Background()
	for i, rdb := range b.direct {
		_, port, _ := net.SplitHostPort(b.addrs[i])
		err := errors.Join(rdb.ConfigSet(ctx, "cluster-announce-port", port).Err(),
			rdb.ClusterAddSlotsRange(ctx, slots*i/len(b.direct), slots*(i+1)/len(b.direct)-1).Err(),
			// If two masters meet with the same epoch, one takes a new one, and might claim a slot that has just migrated.
			rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(b.masters[0].Addr)
		if err := rdb.Do(ctx, "CLUSTER", "MEET", host, port, buses[0]).Err(); err != nil && i > 0 {
			t.Fatal(err)
		}
	}
	Eventually(t, timeout, "the cluster is up at every server", func() bool {
		return !slices.ContainsFunc(b.direct, func(rdb *redis.Client) bool {
			info := rdb.ClusterInfo(ctx).Val()
			return !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(len(b.direct))) ||
				!strings.Contains(info, "cluster_current_epoch:"+strconv.Itoa(len(b.direct)))
		})
	})
}

// open returns a Locker that t closes.
func (b *servers) open(t *testing.T) Locker {
	t.Helper()
	l := b.spec.Open(t, b.addrs)
	t.Cleanup(func() { closeLocker(t, l) })
	return l
}

func closeLocker(t *testing.T, l Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// flush removes every key.
func (b *servers) flush() {
	for _, rdb := range b.direct {
		rdb.FlushAll(context.Background())
	}
}

// removeLocks removes every key except tombstones: the last request of a waiter that has left may still be on its way,
// and must find the tombstone that the waiter has left for it.
func (b *servers) removeLocks(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	for _, rdb := range b.direct {
		keys, err := rdb.Keys(ctx, "*").Result()
		if err != nil {
			t.Fatalf("list the keys: %v", err)
		}
		for _, key := range keys {
			if strings.Contains(key, ":tombstone:") {
				continue
			}
			if err := rdb.Del(ctx, key).Err(); err != nil {
				t.Fatalf("remove %s: %v", key, err)
			}
		}
	}
}

// doAll sends a command to every master; of a cluster, one about a key to the master that has its slot.
func (b *servers) doAll(t *testing.T, what string, args ...any) {
	t.Helper()
	for _, rdb := range b.direct {
		err := rdb.Do(context.Background(), args...).Err()
		if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "MOVED") {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// dropped is how many replies the proxies have dropped or held so far.
func (b *servers) dropped() int {
	n := 0
	for _, p := range b.proxies {
		n += len(p.Dropped)
	}
	return n
}

// conns is the number of connections through the proxies.
func (b *servers) conns() int {
	if b.other != nil {
		return b.other.Conns()
	}
	n := 0
	for _, p := range b.proxies {
		n += p.Conns()
	}
	return n
}

// leftovers lists the keys of the lock at the servers that are not in Spec.LeftKeys.
func (s *fixture) leftovers(t testing.TB) []string {
	t.Helper()
	if s.servers.other != nil {
		return s.servers.other.Left(t)
	}
	var keeps []string
	if s.spec.LeftKeys != nil {
		keeps = s.spec.LeftKeys(s.name)
	}
	var out []string
	for i, rdb := range s.servers.direct {
		keys, err := rdb.Keys(context.Background(), "*"+s.name+"*").Result()
		if err != nil {
			return []string{err.Error()}
		}
		for _, key := range keys {
			if !matchesAny(key, keeps) {
				out = append(out, "master "+strconv.Itoa(i+1)+": "+key)
			}
		}
	}
	return out
}

func matchesAny(key string, patterns []string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, key); ok && err == nil {
			return true
		}
	}
	return false
}
