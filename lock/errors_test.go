package lock

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// serverError is an error that go-redis takes for an error reply.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want outcome
	}{
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, notExecuted},
		{redis.ErrPoolTimeout, notExecuted},
		{redis.ErrClosed, rejected},
		{errors.New("redis: all sentinels specified in configuration are unreachable: x"), notExecuted},
		{io.EOF, unknown},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, unknown},
		{context.DeadlineExceeded, unknown},
		{serverError("READONLY You can't write against a read only replica."), notExecuted},
		{serverError("LOADING Redis is loading the dataset in memory"), notExecuted},
		{serverError("MASTERDOWN Link with MASTER is down"), notExecuted},
		{serverError("BUSY Redis is busy running a script"), notExecuted},
		{serverError("NOSCRIPT No matching script"), notExecuted},
		{serverError("WRONGTYPE Operation against a key"), rejected},
		{serverError("NOAUTH Authentication required."), rejected},
		{serverError("OOM command not allowed"), notExecuted},
		{serverError("ERR Error running script (call to f_1): @user_script:63: @user_script: 63: " +
			"-OOM command not allowed when used memory > 'maxmemory'. "), notExecuted},
		{serverError("ERR Error running script (call to f_1): @user_script:6: ERR syntax error "), rejected},
		{serverError("ERR The user executing the script can't publish to the channel"), broken},
		{serverError("ERR ACL failure in script: User default has no permissions to run the 'set' command script: 8, " +
			"on @user_script:25."), broken},
	} {
		got := judge(tt.err)
		if outcomeOf(got) != tt.want {
			t.Errorf("%v: outcome %d, want %d", tt.err, outcomeOf(got), tt.want)
		}
		if Definite(got) == tt.want.mayHaveHappened() {
			t.Errorf("%v: definite %v with outcome %d", tt.err, Definite(got), tt.want)
		}
	}
}

func TestDefiniteError(t *testing.T) {
	t.Parallel()
	err := definiteError{err: &requestError{unknown, context.Canceled}}
	if !Definite(err) || !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknown) {
		t.Errorf("%v: definite %v", err, Definite(err))
	}
	if Definite(nil) {
		t.Error("a nil error was definite")
	}
}

// Errors name the operation and the lock, once.
func TestErrorsNameTheLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestClient(t, dialRedis(t, "127.0.0.1:1"), Options{}) // never dialed
	for want, try := range map[string]func() error{
		`try to acquire lock "x": lease 1ns is too short: give 10ms or more`: func() error {
			_, err := c.Mutex("x").TryAcquire(ctx, WithLease(1))
			return err
		},
		`acquire lock "x": lease 1ns is too short: give 10ms or more`: func() error {
			_, err := c.RW("x").Write().Acquire(ctx, WithLease(1))
			return err
		},
		`try to acquire permits "x": number out of range: 0: give 1 to 10000`: func() error {
			_, err := c.PermitSemaphore("x").TryAcquire(ctx, 0)
			return err
		},
	} {
		if err := try(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
