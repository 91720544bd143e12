package zookeeper

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockchaos/lockchaos/lock/internal/sessiontest"
	"github.com/lockchaos/lockchaos/lock/locktest"
)

// server is a ZooKeeper server, and a relay to it.
type server struct {
	addr  string
	relay *sessiontest.Relay
	admin *zk.Conn // past the relay
}

// startServer starts a server of its own for a test.
func startServer(t testing.TB) *server {
	t.Helper()
	java, err := exec.LookPath("java")
	cache, _ := os.UserCacheDir()
	jars, _ := filepath.Glob(filepath.Join(cache, "lockchaos", "zookeeper-*", "*.jar"))
	if own := os.Getenv("LOCKCHAOS_ZOOKEEPER"); own != "" {
		jars, _ = filepath.Glob(filepath.Join(own, "*.jar"))
	}
	if err != nil || len(jars) == 0 {
		t.Skip("NOT RUN: no Java, or no ZooKeeper in the cache directory: scripts/zookeeper gets it")
	}
	dir, s := t.TempDir(), &server{addr: locktest.FreeAddr(t)}
	_, port, _ := net.SplitHostPort(s.addr)
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\ntickTime=100\nadmin.enableServer=false\n"+
		"forceSync=no\nmaxClientCnxns=0\nmaxSessionTimeout=%d\n", dir, port, longSession.Milliseconds())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(java, "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(jars, ":"),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dzookeeper.4lw.commands.whitelist=wchs",
		"org.apache.zookeeper.server.ZooKeeperServerMain", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.waitForWatches(t, 0) // it serves: a handshake before that stays without an answer for a quarter of a session
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	session, err := s.direct(t).sessions.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.admin = session.conn
	s.relay = sessiontest.StartRelay(t, s.addr)
	return s
}

// client is a client that connects through the relay.
func (s *server) client(t testing.TB, o Options) *Client { return open(t, s.relay.Addr, o) }

// direct is a client past the relay.
func (s *server) direct(t testing.TB) *Client {
	return open(t, s.addr, Options{})
}

// longSession does not end on a busy machine.
const longSession = time.Minute

func open(t testing.TB, addr string, o Options) *Client {
	t.Helper()
	o.Session, o.Timeout = cmp.Or(o.Session, longSession), cmp.Or(o.Timeout, testTimeout)
	c, err := Open([]string{addr}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// waitForNodes waits until the lock has that many nodes.
func (s *server) waitForNodes(t *testing.T, name string, want int) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; {
		names, _, err := s.admin.Children(defaultRoot + "/" + name)
		if err == nil && len(names) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nodes %v (%v), want %d", names, err, want)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // polling: there is no event
	}
}

// waitForWatches waits until clients of the server have that many watches: each waiter has seen who is before it.
func (s *server) waitForWatches(t testing.TB, want int) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; {
		answer, err := s.command(t.Context(), "wchs")
		if strings.Contains(answer, fmt.Sprintf("Total watches:%d\n", want)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("watches %q (%v), want %d", answer, err, want)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // polling: there is no event
	}
}

// commandTimeout is for one answer, before the command is sent again: a server that is starting accepts connections
// that it never answers.
const commandTimeout = time.Second

// command sends one of the server's four-letter commands.
func (s *server) command(ctx context.Context, name string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(commandTimeout))
	if _, err := conn.Write([]byte(name)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
