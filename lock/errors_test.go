package lock

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// serverError is an error that go-redis takes for an error reply.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want wire.Outcome
	}{
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, wire.NotExecuted},
		{redis.ErrPoolTimeout, wire.NotExecuted},
		{redis.ErrClosed, wire.Rejected},
		{errors.New("redis: all sentinels specified in configuration are unreachable: x"), wire.NotExecuted},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, wire.NotExecuted},
		{io.EOF, wire.Unknown},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, wire.Unknown},
		{context.DeadlineExceeded, wire.Unknown},
		{serverError("READONLY You can't write against a read only replica."), wire.NotExecuted},
		{serverError("LOADING Redis is loading the dataset in memory"), wire.NotExecuted},
		{serverError("MASTERDOWN Link with MASTER is down"), wire.NotExecuted},
		{serverError("BUSY Redis is busy running a script"), wire.NotExecuted},
		{serverError("NOSCRIPT No matching script"), wire.NotExecuted},
		{serverError("WRONGTYPE Operation against a key"), wire.Rejected},
		{serverError("NOAUTH Authentication required."), wire.Rejected},
		{serverError("OOM command not allowed"), wire.NotExecuted},
		{serverError("ERR Error running script (call to f_1): @user_script:63: @user_script: 63: " +
			"-OOM command not allowed when used memory > 'maxmemory'. "), wire.NotExecuted},
		{serverError("ERR Error running script (call to f_1): @user_script:6: ERR syntax error "), wire.Rejected},
		{serverError("ERR The user executing the script can't publish to the channel"), wire.Broken},
		{serverError("ERR ACL failure in script: User default has no permissions to run the 'set' command script: 8, " +
			"on @user_script:25."), wire.Broken},
	} {
		got := judge(tt.err)
		if outcomeOf(got) != tt.want {
			t.Errorf("%v: outcome %d, want %d", tt.err, outcomeOf(got), tt.want)
		}
		if Definite(got) == tt.want.MayHaveHappened() {
			t.Errorf("%v: definite %v with outcome %d", tt.err, Definite(got), tt.want)
		}
	}
}

func TestDefiniteError(t *testing.T) {
	t.Parallel()
	err := definiteError{err: &requestError{wire.Unknown, context.Canceled}}
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

// A hold that has ended is lost, whatever another program stores at its key by then.
func TestReleaseAfterForeignData(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	ctx, c := context.Background(), newTestClient(t, rdb, Options{})
	long := WithLease(time.Hour)
	ended := func(k *leaseKeeper) {
		k.mu.Lock()
		k.deadline = time.Now()
		k.mu.Unlock()
		if err := k.Err(); !errors.Is(err, ErrLost) {
			t.Errorf("error %v at the deadline, want ErrLost", err)
		}
	}
	mutex, fair, rw := acquire(t, c.Mutex("mutex"), long), acquire(t, c.FairMutex("fair"), long), c.RW("rw").Write()
	writer, err := rw.Acquire(ctx, long)
	if err != nil {
		t.Fatal(err)
	}
	permits, err := c.PermitSemaphore("permits", WithTotal(1)).Acquire(ctx, 1, long)
	if err != nil {
		t.Fatal(err)
	}
	for kind, h := range map[string]struct {
		*leaseKeeper
		releaser
	}{
		"mutex": {&mutex.leaseKeeper, mutex}, "fair": {&fair.leaseKeeper, fair}, "rw": {&writer.leaseKeeper, writer},
		"permits": {&permits.leaseKeeper, permits},
	} {
		ended(h.leaseKeeper)
		if err := rdb.Set(ctx, kind, "of another program", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if err := h.releaser.Release(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v, want ErrLost", kind, err)
		}
	}
}

// A waiter that gives up behind a lock of another library was never granted anything, and keeps no place in a queue.
func TestWaiterLeavesForeignLock(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	ctx, c := context.Background(), newTestClient(t, rdb, Options{})
	brief := WithWait(2 * time.Second) // longer than a busy machine keeps a reply back
	for kind, wait := range map[string]func() error{
		"mutex": func() error { _, err := c.Mutex("mutex").Acquire(ctx, brief); return err },
		"fair":  func() error { _, err := c.FairMutex("fair").Acquire(ctx, brief); return err },
	} {
		if err := rdb.Set(ctx, kind, "of another library", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		if err := wait(); !errors.Is(err, ErrHeld) || !Definite(err) {
			t.Errorf("%s: %v, want a definite ErrHeld", kind, err)
		}
	}
	acquire(t, c.FairMutex("queued"), WithLease(time.Hour))
	waits, giveUp := context.WithCancel(ctx)
	gaveUp := make(chan error, 1)
	go func() {
		_, err := c.FairMutex("queued").Acquire(waits)
		gaveUp <- err
	}()
	queued := func() bool { return rdb.Exists(ctx, queueKeys("queued")...).Val() > 0 }
	eventually(t, testTimeout, "a waiter is queued", queued)
	if err := rdb.Set(ctx, "queued", "of another library", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	giveUp()
	if err := <-gaveUp; !errors.Is(err, ErrHeld) || !Definite(err) {
		t.Errorf("queued: %v, want a definite ErrHeld", err)
	}
	if queued() {
		t.Error("the waiter is still queued")
	}
}
