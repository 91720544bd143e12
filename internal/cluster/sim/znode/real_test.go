package znode_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/lock/locktest"
)

const (
	ioTimeout    = time.Minute    // for one reply, or for the start of the server
	longSession  = time.Hour      // no session expires during the test
	noCollection = 24 * time.Hour // the server removes no container during the test
	passwordSize = 16             // bytes
	retry        = 10 * time.Millisecond
)

// startServer starts a standalone server with an empty disk, and returns its address.
func startServer(t *testing.T) string {
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
	text := fmt.Sprintf("dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\ntickTime=1000\n"+
		"admin.enableServer=false\nforceSync=no\nmaxClientCnxns=0\nmaxSessionTimeout=%d\n",
		dir, port, longSession.Milliseconds())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(jars, ":"),
		fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", noCollection.Milliseconds()),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dzookeeper.4lw.commands.whitelist=srvr",
		"org.apache.zookeeper.server.ZooKeeperServerMain", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(ioTimeout); ; {
		answer, err := command(t.Context(), addr, "srvr")
		if strings.Contains(answer, "Mode: standalone") {
			return addr
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not serve: %q (%v)", answer, err)
		}
		time.Sleep(retry) //nolint:forbidigo // polling: there is no event
	}
}

// command sends one of the server's four-letter commands. A server that is starting accepts connections that it never
// answers.
func command(ctx context.Context, addr, name string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte(name)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// realSession is a session with the real server.
type realSession struct {
	conn     net.Conn
	in       *bufio.Reader
	id       int64
	password []byte
}

// connect begins the session, or continues it over another connection.
func (s *realSession) connect(ctx context.Context, addr string) (timeout int32, err error) {
	if s.conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr); err != nil {
		return 0, err
	}
	s.in = bufio.NewReader(s.conn)
	if s.password == nil {
		s.password = make([]byte, passwordSize)
	}
	var m jute.Message
	m.AppendInt(0) // version of the protocol
	m.AppendLong(0)
	m.AppendInt(int32(longSession.Milliseconds()))
	m.AppendLong(s.id)
	m.AppendBytes(s.password)
	m.AppendBool(false) // not read-only
	if err := s.send(m); err != nil {
		return 0, err
	}
	if m, err = s.receive(); err != nil {
		return 0, err
	}
	m.Int() // version of the protocol
	timeout, s.id = m.Int(), m.Long()
	s.password = m.Bytes()
	return timeout, nil
}

// send sends messages at once.
func (s *realSession) send(messages ...jute.Message) error {
	var frames []byte
	for _, m := range messages {
		frames = append(frames, m.Frame()...)
	}
	_ = s.conn.SetDeadline(time.Now().Add(ioTimeout))
	_, err := s.conn.Write(frames)
	return err
}

func (s *realSession) receive() (jute.Message, error) {
	var size [4]byte
	if _, err := io.ReadFull(s.in, size[:]); err != nil {
		return nil, err
	}
	m := make(jute.Message, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(s.in, m)
	return m, err
}

// until receives all messages up to the reply to that request.
func (s *realSession) until(xid int32) (all []jute.Message, err error) {
	for {
		m, err := s.receive()
		if err != nil {
			return all, err
		}
		all = append(all, m)
		if head := m; head.Int() == xid {
			return all, nil
		}
	}
}
