package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// TestSentinelsAreReadyAfterStart: on a busy machine a Sentinel may lose sight of a
// server right after the start, but not in most of ten starts.
func TestSentinelsAreReadyAfterStart(t *testing.T) {
	t.Parallel()
	var longest time.Duration
	starts, unready := 10, 0
	if testing.Short() {
		starts = 3
	}
	for range starts {
		began := time.Now()
		c := up(t, sentinel)
		longest = max(longest, time.Since(began))
		for _, s := range c.sentinels {
			if missing := c.sentinelView(t.Context(), s); missing != "" {
				t.Logf("started, but %s", missing)
				unready++
				break
			}
		}
		must(t, c.Close(t.Context()))
		must(t, c.Close(t.Context()))
	}
	if unready > starts/3 {
		t.Errorf("%d of %d starts were not ready", unready, starts)
	}
	t.Logf("longest of %d: %v", starts, longest.Round(time.Millisecond))
}

func TestRolesAndEndpoints(t *testing.T) {
	for _, test := range []struct {
		topology cluster.Topology
		roles    string
		addrs    int
	}{
		{single, "n1=master", 1},
		{quorum, "n1=master n2=master n3=master", 3},
		{sentinel, "n1=master n2=slave n3=slave", 0},
		{cluster.Topology{Kind: cluster.Replicated}, "n1=master n2=slave n3=slave", 1},
		{cluster.Topology{Kind: cluster.Sharded}, "n1=master n2=master n3=master n4=slave n5=slave n6=slave", 3},
		{cluster.Topology{Kind: cluster.Quorum, Masters: 3, Replicas: 1},
			"n1=master n2=master n3=master n4=slave n5=slave n6=slave", 3},
	} {
		t.Run(test.topology.Kind, func(t *testing.T) {
			c := up(t, test.topology)
			var roles []string
			for _, n := range c.Nodes() {
				roles = append(roles, n.Name+"="+roleOf(t, c, n.Name))
			}
			if got := strings.Join(roles, " "); got != test.roles {
				t.Errorf("roles %s, want %s", got, test.roles)
			}
			e := c.Endpoints(0)
			if len(e.Addrs) != test.addrs || len(e.Sentinels) != c.Topology().Sentinels {
				t.Errorf("endpoints %+v", e)
			}
			for _, addr := range append(e.Addrs, e.Sentinels...) {
				a := newAdmin(addr, e.Password)
				a.Source = e.Source
				wantReply(t, a, "PING", "PONG")
				a.Close()
			}
		})
	}
}

// TestPortTakenInBetween: the first server finds its port taken; Start tries another.
func TestPortTakenInBetween(t *testing.T) {
	path, _, err := findServer(t.Context(), "")
	if err != nil {
		t.Skip("no real server to test with: ", err)
	}
	unlucky := filepath.Join(t.TempDir(), "unlucky-server")
	must(t, os.WriteFile(unlucky, fmt.Appendf(nil, `#!/bin/sh
if [ "$1" != --version ] && [ ! -e %[1]s.once ]; then
	touch %[1]s.once
	echo "Could not create server TCP listening socket: bind: Address already in use"
	exit 1
fi
exec %s "$@"
`, unlucky, path), 0o755))
	c, err := Start(t.Context(), Config{Topology: single, RedisServer: unlucky})
	must(t, err)
	defer c.Close(context.Background())
	wantReply(t, dialFrom(t, c, 0, "n1"), "PING", "PONG")
	if _, err := os.Stat(unlucky + ".once"); err != nil {
		t.Error("the first start did not fail: ", err)
	}
}

// TestSentinelAnnouncesGates: clients of a Sentinel cluster discover gates only.
func TestSentinelAnnouncesGates(t *testing.T) {
	c := up(t, sentinel)
	a := newAdmin(c.Endpoints(0).Sentinels[0], c.password)
	defer a.Close()
	want := []any{"127.0.2.1", fmt.Sprint(c.port)}
	if diff := cmp.Diff(want, do(t, a, "SENTINEL get-master-addr-by-name "+masterName)); diff != "" {
		t.Errorf("master (-want +got):\n%s", diff)
	}
	for what, prefix := range map[string]string{"REPLICAS": "127.0.2.", "SENTINELS": "127.0.5."} {
		for _, item := range do(t, a, "SENTINEL "+what+" "+masterName).([]any) {
			if ip := cluster.Fields(item)["ip"]; !strings.HasPrefix(ip, prefix) {
				t.Errorf("%s has %s, which is not a gate", what, ip)
			}
		}
	}
}

func TestConcurrentRuns(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c, err := Start(t.Context(), Config{Topology: quorum})
			if missing := (*MissingError)(nil); errors.As(err, &missing) {
				t.Log("no real server to test with: ", err)
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestTakenPortIsSkipped(t *testing.T) {
	first := up(t, single)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.1.1:%d", first.port+7)) // the next that is tried
	if errors.Is(err, syscall.EADDRINUSE) {
		t.Log("another program has taken it, which is as good")
	} else {
		must(t, err)
		defer l.Close()
	}
	second := up(t, single)
	if second.port == first.port || second.port == first.port+7 {
		t.Errorf("port %d is used twice", second.port)
	}
}

func TestOptionsOfTheTopology(t *testing.T) {
	with := single
	with.Options = map[string]string{"appendonly": "yes", "save": "3600 1", "maxmemory": "plenty"}
	if c, err := Start(t.Context(), Config{Topology: with}); err == nil {
		_ = c.Close(t.Context())
		t.Error("maxmemory plenty was accepted")
	} else if missing := (*MissingError)(nil); !errors.As(err, &missing) && !strings.Contains(err.Error(), "maxmemory") {
		t.Errorf("a server that exits during its start: %v, want the end of its log", err)
	}
	delete(with.Options, "maxmemory")
	c := up(t, with)
	for option, want := range with.Options {
		got := do(t, c.nodes[0].admin, "CONFIG GET "+option)
		if diff := cmp.Diff([]any{option, want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", option, diff)
		}
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old-server")
	must(t, os.WriteFile(old, []byte("#!/bin/sh\necho 'Redis server v=6.2.7 sha=0'\n"), 0o755))
	odd := filepath.Join(dir, "odd-server")
	must(t, os.WriteFile(odd, []byte("#!/bin/sh\necho hello\n"), 0o755))
	exits := filepath.Join(dir, "exiting-server")
	must(t, os.WriteFile(exits, []byte("#!/bin/sh\n[ $1 = --version ] && echo v=7.9.9 && exit\necho alas\nexit 9\n"),
		0o755))
	option := func(name, value string) cluster.Topology {
		return cluster.Topology{Kind: cluster.Single, Options: map[string]string{name: value}}
	}
	for _, test := range []struct {
		name string
		cfg  Config
		is   error
		says string
	}{
		{"missing", Config{Topology: single, RedisServer: "no-such-server"}, cluster.ErrEnvironment,
			"apt-get install redis-server"},
		{"too old", Config{Topology: single, RedisServer: old}, cluster.ErrEnvironment, "6.2.7"},
		{"something else", Config{Topology: single, RedisServer: odd}, cluster.ErrEnvironment, "hello"},
		{"exits during its start", Config{Topology: single, RedisServer: exits}, cluster.ErrEnvironment, "alas"},
		{"reserved option", Config{Topology: option("Port", "1")}, nil, "leave it out"},
		{"two directives", Config{Topology: option("save", "1 1\nport 1")}, nil, "one redis.conf directive"},
		{"no topology", Config{}, nil, "topology"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Start(t.Context(), test.cfg)
			if err == nil {
				_ = c.Close(t.Context())
				t.Fatal("it was started")
			}
			if !strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %q, want %q in it, class %v", err, test.says, test.is)
			}
		})
	}
}

// TestVersionOfAHangingProgram: Version returns when its context ends.
func TestVersionOfAHangingProgram(t *testing.T) {
	hanging := filepath.Join(t.TempDir(), "hanging-server")
	must(t, os.WriteFile(hanging, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := Version(ctx, hanging)
	if !errors.Is(err, cluster.ErrEnvironment) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestLedgerHasEverything that a sweep would have to remove if the run were killed.
func TestLedgerHasEverything(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := ledger.Open("test")
	must(t, err)
	defer l.Close()
	c, err := Start(t.Context(), Config{Topology: quorum, Ledger: l})
	if missing := (*MissingError)(nil); errors.As(err, &missing) {
		t.Skip("no real server to test with: ", err)
	}
	must(t, err)
	defer c.Close(context.Background())
	text, err := os.ReadFile(l.Path())
	must(t, err)
	want := []string{fmt.Sprintf("%q", c.data)}
	for _, s := range c.nodes {
		want = append(want, fmt.Sprintf(`"pid":%d,`, pidOf(s)))
	}
	for _, w := range want {
		if !strings.Contains(string(text), w) {
			t.Errorf("the ledger does not have %s:\n%s", w, text)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, client := range []int{0, 1, 249, 250, 251, 999, 5000} {
		if got, want := ClientAt(ClientAddr(client)), fmt.Sprintf("client:%d", client); got != want {
			t.Errorf("%s at %s is identified as %s", want, ClientAddr(client), got)
		}
	}
	c := &Cluster{launcher: &loopback{port: 1}}
	for i := range 15 {
		c.nodes = append(c.nodes, c.newServer(Host{I: i + 1}))
		c.sentinels = append(c.sentinels, c.newServer(Host{Sentinel: true, I: i + 1}))
	}
	for _, s := range slices.Concat(c.nodes, c.sentinels) {
		if got := c.identify(netip.AddrPortFrom(s.location.IP, 9), s.location.Gate, "n1"); got != s.name {
			t.Errorf("%s is identified as %s", s.name, got)
		}
		if got := c.identify(s.location.Gate, s.location.Gate, "n1"); got != cluster.UnknownClient {
			t.Errorf("the gate of %s is identified as %s", s.name, got)
		}
	}
	if got := c.identify(netip.MustParseAddrPort("172.20.4.1:9"), netip.AddrPort{}, "n1"); got != cluster.UnknownClient {
		t.Errorf("an address of another network is identified as %s", got)
	}
}

// TestLostHandshakesAreRepeated: nodes that have forgotten each other, as after handshakes that took too long, meet
// again.
func TestLostHandshakesAreRepeated(t *testing.T) {
	t.Parallel()
	c := up(t, cluster.Topology{Kind: cluster.Sharded})
	for _, s := range c.nodes {
		s.admin.Wait = adminWait
		must(t, s.execute(t.Context(), []string{"CLUSTER", "RESET", "SOFT"}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	ids, err := c.waitHandshakes(ctx)
	if err != nil || len(ids) != len(c.nodes) || slices.Contains(ids, "") {
		t.Errorf("IDs %q, %v", ids, err)
	}
}
