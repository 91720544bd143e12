package target

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// Secrets authenticate the gates and the harness. Clients never see them.
type Secrets struct {
	Password         string // "": the servers need none
	SentinelPassword string // of the Sentinels; "": they need none
}

// server is one server of the user's: how to reach it, and the harness's own connection to it.
type server struct {
	name, addr string
	dial       gate.Dialer
	own        *redis.Client // nil: not a Redis server
	gate       *gate.Gate
	refuses    atomic.Bool // the last connection to a server of [Given] failed
}

// wait bounds one exchange of the harness with a server.
const wait = 3 * time.Second

// newServer prepares connections to addr; it opens none.
func (t *Target) newServer(name, addr string, sentinel bool) *server {
	s := &server{name: name, addr: addr}
	user, password, db := t.address.Username, t.secrets.Password, t.address.Database
	if sentinel {
		user, password, db = "", t.secrets.SentinelPassword, 0
	}
	s.dial = func(ctx context.Context) (gate.Conn, error) {
		conn, err := connect(ctx, addr, t.tls)
		if err == nil {
			err = introduce(ctx, conn, user, password, db)
		}
		if err == nil {
			return conn, nil
		}
		if conn != nil {
			_ = conn.Close()
		}
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	s.own = redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
		DialTimeout: wait, ReadTimeout: wait, WriteTimeout: wait, ContextTimeoutEnabled: true,
		Dialer:                   func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return s
}

// connect opens a TCP connection, and TLS above it if config is not nil.
func connect(ctx context.Context, addr string, config *tls.Config) (gate.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if config == nil {
		return conn.(*net.TCPConn), nil
	}
	config = config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(addr)
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// introduce authenticates and selects the database, so that the user of the connection needs neither.
func introduce(ctx context.Context, conn net.Conn, user, password string, db int) error {
	var commands [][]string
	switch {
	case password != "" && user != "":
		commands = append(commands, []string{"AUTH", user, password})
	case password != "":
		commands = append(commands, []string{"AUTH", password})
	}
	if db > 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(db)})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	in := bufio.NewReader(conn) // reads nothing beyond the replies: nothing else was requested
	for _, words := range commands {
		if _, err := conn.Write(resp.AppendStrings(nil, words...)); err != nil {
			return err
		}
		reply, err := resp.Read(in)
		if refused, is := reply.(resp.Error); is {
			err = fmt.Errorf("%s: %w", words[0], refused)
		}
		if err != nil {
			return err
		}
	}
	if !stop() {
		return ctx.Err()
	}
	return nil
}

// ask sends commands in one round trip, past the gates; see [cluster.Ask]. Only the files of this package call it, so
// that they list all commands of the harness.
func (s *server) ask(ctx context.Context, commands ...[]string) ([]any, error) {
	pipe := s.own.Pipeline()
	sent := make([]*redis.Cmd, len(commands))
	for i, words := range commands {
		args := make([]any, len(words))
		for j, word := range words {
			args[j] = word
		}
		sent[i] = pipe.Do(ctx, args...)
	}
	_, err := pipe.Exec(ctx)
	var refused redis.Error
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("sending a command to %s: %w", s.addr, err)
	}
	replies := make([]any, len(sent))
	for i, c := range sent {
		reply, err := c.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			reply = err
		}
		replies[i] = reply
	}
	return replies, nil
}

// one sends one command; an error reply is an error.
func (s *server) one(ctx context.Context, words ...string) (any, error) {
	replies, err := s.ask(ctx, words)
	if err != nil {
		return nil, err
	}
	if refused, is := replies[0].(error); is {
		return nil, fmt.Errorf("%s at %s: %w", words[0], s.addr, refused)
	}
	return replies[0], nil
}
