package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is the redis-server of all subjects, with a connection for statistics.
type server struct {
	addr string
	dir  string
	cmd  *exec.Cmd
	rdb  *redis.Client
}

func startServer(ctx context.Context) (*server, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("find redis-server: %w; install Redis 7 or later", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	addr := l.Addr().String()
	l.Close()
	dir, err := os.MkdirTemp("", "lockchaos-bench")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	s := &server{addr: addr, dir: dir}
	s.cmd = exec.Command(bin, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--maxclients", "4000")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	s.rdb = redis.NewClient(&redis.Options{Addr: addr})
	for range 200 {
		if s.rdb.Ping(ctx).Err() == nil {
			return s, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	s.stop()
	return nil, fmt.Errorf("redis-server at %s does not reply", addr)
}

func (s *server) stop() {
	_ = s.rdb.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

func (s *server) version(ctx context.Context) (string, error) {
	info, err := s.rdb.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("version of redis-server: %w", err)
	}
	return info["Server"]["redis_version"], nil
}

// calls is how many [requests] the clients have sent so far, with SET if sets is true.
func (s *server) calls(ctx context.Context, sets bool) (sent int64, err error) {
	info, err := s.rdb.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	for name, value := range info["Commandstats"] {
		command := strings.TrimPrefix(name, "cmdstat_")
		if !requests[command] && !(sets && command == "set") {
			continue
		}
		count, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s of INFO commandstats: %w", name, err)
		}
		sent += n
	}
	return sent, nil
}

// reset flushes the server and resets its counters.
func (s *server) reset(ctx context.Context) error {
	if err := s.rdb.FlushAll(ctx).Err(); err != nil {
		return err
	}
	return s.rdb.ConfigResetStat(ctx).Err()
}
