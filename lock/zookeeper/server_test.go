package zookeeper

import (
	"cmp"
	"context"
	"errors"
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

// backend is a ZooKeeper server.
type backend struct {
	addr  string
	admin *zk.Conn
}

func startServer(t testing.TB) *sessiontest.Relayed { return sessiontest.Behind(t, startBackend(t)) }

// startBackend starts a server of its own for a test.
func startBackend(t testing.TB) *backend {
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
	dir, b := t.TempDir(), &backend{addr: locktest.FreeAddr(t)}
	_, port, _ := net.SplitHostPort(b.addr)
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\ntickTime=100\nadmin.enableServer=false\n"+
		"forceSync=no\nmaxClientCnxns=0\nmaxSessionTimeout=%d\n", dir, port, sessiontest.LongLease.Milliseconds())
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
	// a handshake before it serves stays without an answer for a quarter of a session
	locktest.Eventually(t, sessiontest.Timeout, "ZooKeeper serves", func() bool {
		serves, err := b.Watched(t.Context(), 0, 0)
		return err == nil && serves
	})
	ctx, cancel := context.WithTimeout(t.Context(), sessiontest.Timeout)
	defer cancel()
	session, err := open(t, b.addr, Options{}).sessions.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.admin = session.conn
	return b
}

func open(t testing.TB, addr string, o Options) *Client {
	t.Helper()
	o.Session, o.Timeout = cmp.Or(o.Session, sessiontest.LongLease), cmp.Or(o.Timeout, sessiontest.Timeout)
	c, err := Open([]string{addr}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

func (b *backend) Addr() string { return b.addr }

// Open makes a client. Its waiters look again only when an event wakes them.
func (*backend) Open(t testing.TB, addr string, o sessiontest.Options) sessiontest.Client {
	t.Helper()
	c := open(t, addr, Options{Session: o.Lease, OnLost: func(*Hold) {
		if o.OnLost != nil {
			o.OnLost()
		}
	}})
	return sessiontest.ClientOf(c, c.Close)
}

func (*backend) Undone(err error) bool  { return Undone(err) }
func (*backend) UndoesUnanswered() bool { return false }

// Entries are the nodes below that of a lock, or of all: those are containers and stay for a while.
func (b *backend) Entries(_ context.Context, lock string) (all []string, err error) {
	locks := []string{lock}
	if lock == "" {
		if locks, _, err = b.admin.Children(defaultRoot); err != nil {
			return nil, err
		}
	}
	for _, name := range locks {
		nodes, _, err := b.admin.Children(defaultRoot + "/" + name)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		for _, node := range nodes {
			all = append(all, defaultRoot+"/"+name+"/"+node)
		}
	}
	return all, nil
}

// Watched counts the watches of single nodes: the server does not count the others.
func (b *backend) Watched(ctx context.Context, one, _ int) (bool, error) {
	answer, err := b.command(ctx, "wchs")
	return strings.Contains(answer, fmt.Sprintf("Total watches:%d\n", one)), err
}

func (b *backend) Remove(ctx context.Context, lock string) error {
	nodes, err := b.Entries(ctx, lock)
	if err != nil {
		return err
	}
	var ops []any
	for _, path := range nodes {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	_, err = b.admin.Multi(ops...)
	return err
}

// commandTimeout is for one answer, before the command is sent again: a server that is starting accepts connections
// that it never answers.
const commandTimeout = time.Second

// command sends one of the server's four-letter commands.
func (b *backend) command(ctx context.Context, name string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.addr)
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
