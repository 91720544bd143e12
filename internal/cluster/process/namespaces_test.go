package process

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/line"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// inNamespaces is a cluster in network namespaces. It checks that none is left when the test ends.
func inNamespaces(t *testing.T, topology cluster.Topology) *Cluster {
	t.Helper()
	if why := MissingNetwork(); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	c := startWith(t, topology, cluster.Requirements{Network: true})
	name := c.namespaces.name
	t.Cleanup(func() {
		must(t, c.Close(context.Background()))
		nothingNamed(t, name)
	})
	return c
}

// nothingNamed fails the test if there is a device or namespace whose name begins with name.
func nothingNamed(t *testing.T, name string) {
	t.Helper()
	for _, dir := range []string{"/sys/class/net", "/run/netns"} {
		left, err := filepath.Glob(filepath.Join(dir, name+"*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// hangs reports whether command gets no reply.
func hangs(t *testing.T, a *admin, command string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := a.do(ctx, strings.Fields(command))
	return errors.Is(err, context.DeadlineExceeded)
}

// TestDisconnectedMasterIsReplaced: only samples and admin commands still reach a
// disconnected master, and Sentinels replace it.
func TestDisconnectedMasterIsReplaced(t *testing.T) {
	t.Parallel()
	c := inNamespaces(t, sentinel)
	a := dialFrom(t, c, 0, "n1")
	wantReply(t, a, "SET k v", "OK")
	must(t, c.Disconnect(t.Context(), "n1"))
	if !hangs(t, a, "PING") {
		t.Error("a disconnected server replied")
	}
	if reply, err := c.Do(t.Context(), "n1", "SET", "alone", "1"); err != nil || reply != "OK" {
		t.Errorf("past the network: %v, %v", reply, err)
	}
	waitFor(t, "n2 to be master", func() bool {
		role, err := c.Role(t.Context(), "n2")
		return err == nil && role == "master"
	})
	if role := roleOf(t, c, "n1"); role != "master" {
		t.Errorf("the old master reports role %q", role)
	}
	must(t, c.Reconnect(t.Context(), "n1"))
	wantReply(t, dialFrom(t, c, 1, "n1"), "GET alone", "1")
}

// TestConnectionSurvivesReconnect: a connection that hung is not reset.
func TestConnectionSurvivesReconnect(t *testing.T) {
	c := inNamespaces(t, single)
	a := dialFrom(t, c, 0, "n1")
	wantReply(t, a, "SET k 1", "OK")
	must(t, c.Disconnect(t.Context(), "n1"))
	replied := make(chan error, 1)
	patient, cancel := context.WithTimeout(t.Context(), line.Wait)
	defer cancel()
	go func() {
		_, err := a.do(patient, []string{"APPEND", "k", "2"})
		replied <- err
	}()
	select {
	case err := <-replied:
		t.Fatalf("a disconnected server replied: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	must(t, c.Reconnect(t.Context(), "n1"))
	<-replied // perhaps with a timeout
	waitFor(t, "the write to arrive", func() bool {
		reply, err := c.Do(t.Context(), "n1", "GET", "k")
		return err == nil && reply == "12"
	})
	must(t, c.Kill(t.Context(), "n1"))
	must(t, c.Restart(t.Context(), "n1"))
	wantReply(t, dialFrom(t, c, 1, "n1"), "PING", "PONG")
	if err := c.Disconnect(t.Context(), "n7"); !errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("no such node: %v", err)
	}
	if err := up(t, single).Disconnect(t.Context(), "n1"); !errors.Is(err, cluster.ErrEnvironment) {
		t.Errorf("a server on loopback: %v", err)
	}
}

// TestSweepRemovesNamespaces: a sweep removes the network of a killed run.
func TestSweepRemovesNamespaces(t *testing.T) {
	if why := MissingNetwork(); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	t.Setenv("TMPDIR", t.TempDir())
	l, err := ledger.Open("dead")
	must(t, err)
	with := cluster.Requirements{Network: true}
	c, err := Start(t.Context(), Config{Topology: quorum, Ledger: l, Requirements: with})
	if errors.Is(err, cluster.ErrEnvironment) {
		t.Skip("NOT RUN: ", err)
	}
	must(t, err)
	l.Keep()
	must(t, l.Close()) // as when its run is killed
	report, err := ledger.Sweep(t.Context(), nil)
	must(t, err)
	if len(report.Swept) != 1 || len(report.Swept[0].Networks) != 4 || len(report.Swept[0].Failed) > 0 {
		t.Errorf("report %+v", report)
	}
	nothingNamed(t, c.namespaces.name)
	must(t, c.Close(t.Context())) // nothing is left
}

func TestSubnetsAreFree(t *testing.T) {
	seen := map[netip.Prefix]bool{}
	for first := range 200 {
		subnet, err := freeSubnet(first)
		must(t, err)
		if !subnet.IsValid() || subnet != subnet.Masked() || !netip.MustParsePrefix("10.192.0.0/10").Contains(subnet.Addr()) {
			t.Errorf("subnet %v", subnet)
		}
		seen[subnet] = true
	}
	if len(seen) < 100 {
		t.Errorf("only %d different ones", len(seen))
	}
}

// TestLongSocketPathsAreRefused: the error names the remedy.
func TestLongSocketPathsAreRefused(t *testing.T) {
	if why := MissingNetwork(); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	must(t, os.Mkdir(long, 0o755))
	t.Setenv("TMPDIR", long)
	c, err := Start(t.Context(), Config{Topology: single, Requirements: cluster.Requirements{Network: true}})
	if err == nil {
		_ = c.Close(t.Context())
		t.Fatal("it was started")
	}
	if !errors.Is(err, cluster.ErrEnvironment) || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("error %v", err)
	}
}
