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

// serverError is an error that go-redis takes for one that a server answered.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

func TestJudge(t *testing.T) {
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
		{serverError("OOM command not allowed"), rejected},
	} {
		got := classify(tt.err)
		if got.outcome != tt.want {
			t.Errorf("%v: fate %d, want %d", tt.err, got.outcome, tt.want)
		}
		if Definite(got) != (tt.want != unknown) {
			t.Errorf("%v: definite %v with fate %d", tt.err, Definite(got), tt.want)
		}
	}
}

func TestCertain(t *testing.T) {
	err := definiteError{&requestError{unknown, context.Canceled}}
	if !Definite(err) || !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknown) {
		t.Errorf("%v: definite %v", err, Definite(err))
	}
	if Definite(nil) {
		t.Error("no error is no proof that nothing happened")
	}
}
