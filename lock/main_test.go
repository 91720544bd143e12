package lock

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// discardLogger keeps go-redis from logging every server that a test has killed.
type discardLogger struct{}

func (discardLogger) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(discardLogger{})
	if _, err := exec.LookPath("redis-server"); err != nil {
		_ = flag.Set("test.skip", "^Example") // as the tests of the same servers
	}
	code := m.Run()
	examples.stop()
	os.Exit(code)
}

// examples are the servers of the examples, which have no testing.T.
//
//nolint:gochecknoglobals // started once for all examples
var examples exampleServers

type exampleServers struct {
	mu   sync.Mutex
	dir  string
	cmds []*exec.Cmd
}

// DialExample is a client of server n, 0 to 2, that the examples share.
func DialExample(n int) *redis.Client {
	examples.mu.Lock()
	defer examples.mu.Unlock()
	for len(examples.cmds) <= n {
		if err := examples.start(); err != nil {
			panic(err)
		}
	}
	return redis.NewClient(&redis.Options{Network: "unix", Addr: examples.socket(n), ContextTimeoutEnabled: true})
}

func (s *exampleServers) socket(n int) string { return filepath.Join(s.dir, fmt.Sprint(n)) }

func (s *exampleServers) start() (err error) {
	if s.dir == "" {
		s.dir, err = os.MkdirTemp("", "lock-examples")
	}
	if err != nil {
		return err
	}
	path := s.socket(len(s.cmds))
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", path, "--dir", s.dir, "--save", "")
	if err = cmd.Start(); err != nil {
		return err
	}
	s.cmds = append(s.cmds, cmd)
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: path, MaxRetries: 100})
	defer rdb.Close()
	return rdb.Ping(context.Background()).Err()
}

func (s *exampleServers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cmd := range s.cmds {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
