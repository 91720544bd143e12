package docker

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// patience bounds every wait; nothing waits for it to pass.
const patience = 30 * time.Second

// needEngine skips the test where there is no engine with the image.
func needEngine(t *testing.T) {
	t.Helper()
	e, err := dial(t.Context(), "")
	if err != nil {
		t.Skip("NOT RUN: needs a Docker engine: ", err)
	}
	defer e.Client.Close()
	if _, err := e.ImageInspect(t.Context(), Image()); err != nil {
		t.Skipf("NOT RUN: needs image %s at the engine (make docker-image, and %s=%s): %v",
			Image(), ImageVariable, LocalImage, err)
	}
}

// up starts a cluster, closes it when the test ends, and checks that nothing is left.
func up(t *testing.T, topology cluster.Topology, l *ledger.Ledger) *Cluster {
	t.Helper()
	needEngine(t)
	began := time.Now()
	c, err := Start(t.Context(), Config{Topology: topology, Dir: t.TempDir(), Ledger: l})
	must(t, err)
	t.Logf("%s ready after %v", topology.Kind, time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		began := time.Now()
		must(t, c.Close(context.Background()))
		must(t, c.Close(context.Background()))
		t.Logf("closed after %v", time.Since(began).Round(time.Millisecond))
		checkRemoved(t, c.launcher.run)
	})
	return c
}

// checkRemoved fails the test if the engine has anything of a run.
func checkRemoved(t *testing.T, run string) {
	t.Helper()
	e, err := dial(context.Background(), "")
	must(t, err)
	defer e.Client.Close()
	of := labeled(runLabel, run)
	containers, err := e.ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: of})
	must(t, err)
	networks, err := e.NetworkList(context.Background(), client.NetworkListOptions{Filters: of})
	must(t, err)
	volumes, err := e.VolumeList(context.Background(), client.VolumeListOptions{})
	must(t, err)
	if len(containers.Items)+len(networks.Items)+len(volumes.Items) > 0 {
		t.Errorf("left behind: containers %v, networks %v, volumes %v", containers.Items, networks.Items, volumes.Items)
	}
}

// caller is a client's connection to a node's gate.
type caller struct {
	net.Conn
	in *bufio.Reader
}

// call connects as client does, from its own address.
func call(t *testing.T, c *Cluster, client, node int) *caller {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Endpoints(client).Source)}, Timeout: patience}
	conn, err := d.DialContext(t.Context(), "tcp", c.Nodes()[node-1].Addr)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	called := &caller{conn, bufio.NewReader(conn)}
	called.send(t, "AUTH "+c.Endpoints(client).Password)
	if got := called.receive(patience); got != "+OK" {
		t.Fatalf("received %q, want +OK", got)
	}
	return called
}

func (c *caller) send(t *testing.T, line string) {
	t.Helper()
	_, err := c.Write([]byte(line + "\r\n"))
	must(t, err)
}

// receive is the next line; "silence" if none arrives in time.
func (c *caller) receive(most time.Duration) string {
	_ = c.SetReadDeadline(time.Now().Add(most))
	line, err := c.in.ReadString('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case err != nil:
		return err.Error()
	}
	return strings.TrimSpace(line)
}

// wantReply fails the test unless the reply to line is want.
func (c *caller) wantReply(t *testing.T, line, want string) {
	t.Helper()
	c.send(t, line)
	if got := c.receive(patience); got != want {
		t.Fatalf("%s replied %q, want %q", line, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitFor polls with a deadline: servers send no event.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	locktest.Eventually(t, time.Minute, what, ok)
}

// becomes waits until node reports the role.
func becomes(t *testing.T, c *Cluster, node, role string) {
	t.Helper()
	waitFor(t, node+" to be "+role, func() bool {
		now, err := c.Role(t.Context(), node)
		return err == nil && now == role
	})
}
