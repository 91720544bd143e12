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

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
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
	text := fmt.Sprintf("tickTime=%d\nforceSync=no\nmaxSessionTimeout=%d\n",
		o.Tick.Milliseconds(), o.MaxSession.Milliseconds())
	addr := locktest.FreeAddr(t)
	run(t, addr, text, "ZooKeeperServerMain", 0)
	awaitMode(t, addr, "standalone")
	return addr
}

// StartEnsemble starts that many servers with disks that are synchronized, and waits until all of them serve. It
// returns their addresses.
func StartEnsemble(t testing.TB, members int) []string {
	t.Helper()
	text := "tickTime=100\nforceSync=yes\npreAllocSize=1024\ninitLimit=50\nsyncLimit=10\nmaxSessionTimeout=60000\n"
	var addrs []string
	for i := range members {
		addr := locktest.FreeAddr(t)
		addrs = append(addrs, addr)
		text += fmt.Sprintf("server.%d=%s:%s;%s\n", i+1, locktest.FreeAddr(t), port(locktest.FreeAddr(t)), addr)
	}
	for i, addr := range addrs {
		run(t, addr, text, "quorum.QuorumPeerMain", i+1)
	}
	for _, addr := range addrs {
		awaitMode(t, addr, "")
	}
	return addrs
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// awaitMode waits until a server serves, in that mode; "": in any.
func awaitMode(t testing.TB, addr, mode string) {
	t.Helper()
	locktest.Eventually(t, startTimeout, "ZooKeeper serves", func() bool {
		answer, _ := Command(t.Context(), addr, "srvr")
		return strings.Contains(answer, "Mode: "+mode)
	})
}

// run starts a server, the member of that number of an ensemble; 0: of none.
func run(t testing.TB, addr, text, class string, member int) {
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
	dir := t.TempDir()
	config := filepath.Join(dir, "zoo.cfg")
	text += fmt.Sprintf("dataDir=%s\nadmin.enableServer=false\nmaxClientCnxns=0\n", dir)
	if member == 0 {
		text += fmt.Sprintf("clientPort=%s\nclientPortAddress=127.0.0.1\n", port(addr))
	}
	files := map[string]string{config: text, filepath.Join(dir, "myid"): fmt.Sprintln(member)}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(java, "-Xms16m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		// The archive of scripts/zookeeper saves a third of the CPU time of a start. Java ignores a missing one.
		"-Xshare:auto", "-XX:SharedArchiveFile="+filepath.Join(filepath.Dir(jars[0]), "classes.jsa"),
		"-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-cp", strings.Join(jars, ":"),
		fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", noCollection.Milliseconds()),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dzookeeper.4lw.commands.whitelist=srvr,wchs",
		"org.apache.zookeeper.server."+class, config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
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
