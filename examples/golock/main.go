// Command golock is a client of the protocol (docs/reference/protocol.md) for a lock in Go: the lock of the Redis
// documentation for one master, SET key owner NX PX lease, released by compare-and-delete. Package client reads the
// requests and writes the replies.
//
//	go build -o bin/golock ./examples/golock && chaos run --scenario gc-pause --lock exec:bin/golock
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

const (
	release = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
	renew   = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`
)

var errHeld = errors.New("held by another owner")

func main() {
	spec := client.Spec{
		Can: promise.Try | promise.Renew, Open: open,
		// These errors mean that nothing happened; the outcome of an operation with any other error is unknown.
		Definite: func(err error) bool { return errors.Is(err, errHeld) },
		Code: func(err error) string {
			if errors.Is(err, errHeld) {
				return "held"
			}
			return "unknown"
		},
	}
	find := func(string) (client.Spec, error) { return spec, nil }
	if err := client.Serve(context.Background(), os.Stdin, os.Stdout, find); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type lock struct{ rdb *redis.Client }

func open(s client.Setup, _ func(client.Reply)) (client.Locker, error) {
	source := &net.TCPAddr{IP: net.ParseIP(s.Endpoints.Source)} // faults identify us by it
	from := net.Dialer{Timeout: 2 * time.Second, LocalAddr: source}
	return lock{redis.NewClient(&redis.Options{
		Addr: s.Endpoints.Addrs[0], Password: s.Endpoints.Password, Dialer: from.DialContext, MaxRetries: -1,
	})}, nil
}

func (l lock) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	lease := lease(a.Lease)
	for end := time.Now().Add(a.Wait); ; {
		start := time.Now() // before the server starts the lease
		granted, err := l.rdb.SetNX(context.WithoutCancel(ctx), a.Key, a.Owner, lease).Result()
		if err != nil {
			return client.Grant{}, err
		}
		deadline := start.Add(lease)
		if granted && time.Now().Before(deadline) {
			return client.Grant{Deadline: deadline, Count: 1}, nil
		}
		if !time.Now().Before(end) { // a grant whose reply came too late is none: the server ends it
			return client.Grant{}, errHeld
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (l lock) Renew(ctx context.Context, h client.Hold, d time.Duration) (client.Grant, error) {
	start := time.Now()
	err := l.run(ctx, renew, h, lease(d).Milliseconds())
	return client.Grant{Deadline: start.Add(lease(d))}, err
}

func (l lock) Release(ctx context.Context, h client.Hold) (int, error) {
	return 0, l.run(ctx, release, h)
}

func (l lock) Close(context.Context) error { return l.rdb.Close() }

func (l lock) run(ctx context.Context, script string, h client.Hold, more ...any) error {
	n, err := l.rdb.Eval(ctx, script, []string{h.Key}, append([]any{h.Owner}, more...)...).Int()
	if err == nil && n == 0 {
		return client.ErrNotHeld
	}
	return err
}

func lease(d time.Duration) time.Duration {
	if d == 0 {
		return 10 * time.Second
	}
	return d
}
