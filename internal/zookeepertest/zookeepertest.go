// Package zookeepertest starts ZooKeeper servers for tests.
package zookeepertest

import (
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

	"github.com/lockchaos/lockchaos/lock/locktest"
)

const (
	startTimeout = time.Minute // also on a busy machine
	noCollection = 24 * time.Hour
	replyTimeout = time.Second // a server that is starting accepts connections that it never answers
)

// Options configure a server.
type Options struct {
	Tick       time.Duration // its unit of time: the shortest session is two ticks
	MaxSession time.Duration // the longest session
}

// Start starts a standalone server with an empty disk and waits until it serves. It returns the address. The server
// removes no empty containers, and ends with the test. Start skips the test if Java or ZooKeeper is missing.
func Start(t testing.TB, o Options) string {
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
	dir, addr := t.TempDir(), locktest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\ntickTime=%d\nadmin.enableServer=false\n"+
		"forceSync=no\nmaxClientCnxns=0\nmaxSessionTimeout=%d\n",
		dir, port, o.Tick.Milliseconds(), o.MaxSession.Milliseconds())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(jars, ":"),
		fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", noCollection.Milliseconds()),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dzookeeper.4lw.commands.whitelist=srvr,wchs",
		"org.apache.zookeeper.server.ZooKeeperServerMain", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	locktest.Eventually(t, startTimeout, "ZooKeeper serves", func() bool {
		answer, _ := Command(t.Context(), addr, "srvr")
		return strings.Contains(answer, "Mode: standalone")
	})
	return addr
}

// Command sends one of the server's four-letter commands, srvr or wchs, and returns the reply.
func Command(ctx context.Context, addr, name string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(replyTimeout))
	if _, err := conn.Write([]byte(name)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
