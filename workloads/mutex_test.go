package workloads

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// run is one client of the mutex workload with that script, stopped when it has
// been asked stopAt times.
func run(t *testing.T, script func(n int, r client.Request) (*client.Reply, error), stopAt int) (*tape, *clientFake) {
	t.Helper()
	tape, c := newTape(), newClientFake(newLockFake())
	if script != nil {
		c.script = script
	}
	mutexClient(t.Context(), stopAfter(c, stopAt), env(c, tape, 0, 3, 1))
	return tape, c
}

func TestMutexAsksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := run(t, nil, 4)
		want := []string{
			"0 acquire invoke", "0 acquire ok", "0 work invoke", "0 work ok", "0 touch ok", "0 release invoke", "0 release ok",
			"0 acquire invoke", "0 acquire ok", "0 work invoke", "0 work ok", "0 touch ok", "0 release invoke", "0 release ok",
		}
		if diff := cmp.Diff(want, tape.words()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		asked := []client.Request{
			{Op: "acquire", Acquire: client.Acquire{Key: "orders", Owner: "c0-1", Wait: time.Second, Lease: time.Second}},
			{Op: "work", Acquire: client.Acquire{Key: "orders", Owner: "c0-1"}, Work: 10 * time.Millisecond},
			{Op: "release", Acquire: client.Acquire{Key: "orders", Owner: "c0-1"}},
		}
		if diff := cmp.Diff(asked, c.asked[:3]); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if owner := c.asked[3].Owner; owner != "c0-2" {
			t.Errorf("the second hold has owner %s, want one of its own", owner)
		}
		h := built(t, tape)
		for i, touch := range h.Touches {
			if touch.Token != uint64(i+1) || touch.Read != int64(i) || touch.Found != int64(i) {
				t.Errorf("touch %d: %+v", i, touch)
			}
		}
	})
}

// TestMutexAfterEachOutcome: what follows an acquire, a work or a release that
// did not go well, and under which process.
func TestMutexAfterEachOutcome(t *testing.T) {
	fail, info := &client.Reply{Type: "fail", Code: "held"}, &client.Reply{Type: "info", Code: "unknown"}
	late, dead := fmt.Errorf("%w: work", client.ErrTimeout), client.ErrExited
	for _, test := range []struct {
		name  string
		op    string
		reply *client.Reply
		err   error
		want  []string
	}{
		{"acquire failed", "acquire", fail, nil, []string{
			"0 acquire invoke", "0 acquire fail held", "0 acquire invoke"}},
		{"acquire unknown", "acquire", info, nil, []string{
			"0 acquire invoke", "0 acquire info unknown", "3 acquire invoke"}},
		{"acquire late", "acquire", nil, late, []string{
			"0 acquire invoke", "0 acquire info client-timeout", "3 acquire invoke"}},
		{"work failed", "work", fail, nil, []string{
			"0 work invoke", "0 work fail held", "0 release invoke", "0 release ok", "0 acquire invoke"}},
		{"work unknown: no touch, another process", "work", info, nil, []string{
			"0 work invoke", "0 work info unknown", "3 release invoke", "3 release ok", "3 acquire invoke"}},
		{"release unknown", "release", info, nil, []string{
			"0 release invoke", "0 release info unknown", "3 acquire invoke"}},
		{"acquire: dead", "acquire", nil, dead, []string{
			"0 acquire invoke", "0 acquire info client-exited", "0 crash info"}},
		{"work: dead", "work", nil, dead, []string{
			"0 work invoke", "0 work info client-exited", "0 crash info", "3 release invoke", "3 release info client-exited"}},
		{"release: babble", "release", nil, client.ErrProtocol, []string{
			"0 release invoke", "0 release info client-protocol", "0 crash info"}},
		{"acquire: another error", "acquire", nil, errors.New("x"), []string{
			"0 acquire invoke", "0 acquire info client-error", "3 acquire invoke"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hit := false
				tape, _ := run(t, func(_ int, r client.Request) (*client.Reply, error) {
					if errors.Is(test.err, client.ErrExited) && hit {
						return nil, test.err
					}
					if r.Op != test.op || hit {
						return nil, nil
					}
					hit = true
					return test.reply, test.err
				}, 6)
				words := tape.words()
				for len(words) > 0 && words[0] != test.want[0] {
					words = words[1:]
				}
				if diff := cmp.Diff(test.want, words[:min(len(words), len(test.want))]); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if dies := errors.Is(test.err, dead) || errors.Is(test.err, client.ErrProtocol); dies && len(words) > len(test.want) {
					t.Errorf("a dead client was asked: %v", words[len(test.want):])
				}
				built(t, tape)
			})
		})
	}
}

// TestMutexDoesNotHammer: a client that is refused at once asks again, but not at once.
func TestMutexDoesNotHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		run(t, func(int, client.Request) (*client.Reply, error) { return &client.Reply{Type: "fail"}, nil }, 100)
		if took := time.Since(began); took < 99*10*time.Millisecond || took > 99*50*time.Millisecond {
			t.Errorf("100 refused requests in %v", took)
		}
	})
}

func TestMutexStopsPromptly(t *testing.T) {
	stopped := func(t *testing.T, after time.Duration, e func(*Env), script *client.Reply) time.Duration {
		t.Helper()
		c := newClientFake(newLockFake())
		c.script = func(int, client.Request) (*client.Reply, error) { return script, nil }
		one := env(c, newTape(), 0, 1, 1)
		e(&one)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			mutexClient(t.Context(), stop, one)
			close(ended)
		}()
		<-time.After(after)
		began := time.Now()
		close(stop)
		<-ended
		return time.Since(began)
	}
	for _, test := range []struct {
		name   string
		env    func(*Env)
		script *client.Reply
		want   time.Duration
	}{
		{"while it thinks", func(e *Env) { e.Params.Think = time.Hour }, nil, 0},
		{"while it backs off", func(*Env) {}, &client.Reply{Type: "fail"}, 0},
		{"in the critical section, which goes to its end", func(e *Env) { e.Params.Hold = time.Second }, nil,
			500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took := stopped(t, 500*time.Millisecond, test.env, test.script); took != test.want {
					t.Errorf("it stopped after %v, want %v", took, test.want)
				}
			})
		})
	}
}

// TestMutexIsAbandoned: when ctx ends, a client that waits is left to itself,
// and what it was asked is of unknown outcome.
func TestMutexIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, l := newTape(), newLockFake()
		l.owner["orders"] = "somebody"
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		e := env(newClientFake(l), tape, 0, 1, 1)
		began := time.Now()
		mutexClient(ctx, make(chan struct{}), e)
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if diff := cmp.Diff([]string{"0 acquire invoke", "0 acquire info client-timeout"}, tape.words()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// TestNobodyWaitsBeyondTheRun: the wait for the lock ends with the run.
func TestNobodyWaitsBeyondTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := Env{Params: Params{Wait: time.Minute}, Until: time.Now().Add(3 * time.Second)}
		if got := e.wait(); got != 3*time.Second {
			t.Errorf("wait %v, want 3 s", got)
		}
		e.Until = time.Now().Add(-time.Hour)
		if got := e.wait(); got != time.Millisecond {
			t.Errorf("wait %v after the end, want 1 ms", got)
		}
		e.Until = time.Now().Add(time.Hour)
		if got := e.wait(); got != time.Minute {
			t.Errorf("wait %v, want a minute", got)
		}
	})
}

// choices are the keys and the lengths of work that a seed makes.
func choices(t *testing.T, seed uint64) []string {
	c := newClientFake(newLockFake())
	e := env(c, newTape(), 0, 1, seed)
	e.Params.Keys, e.Params.Jitter = 7, 5*time.Millisecond
	mutexClient(t.Context(), stopAfter(c, 60), e)
	var all []string
	for _, r := range c.asked {
		all = append(all, fmt.Sprint(r.Op, r.Key, r.Work))
	}
	return all
}

func TestTheSeedMakesTheChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, again, other := choices(t, 1), choices(t, 1), choices(t, 2)
		if diff := cmp.Diff(one, again); diff != "" {
			t.Errorf("one seed, two runs:\n%s", diff)
		}
		if cmp.Equal(one, other) {
			t.Error("two seeds make the same choices")
		}
	})
}

// TestManyClientsOnOneLock is the workload as a whole: a good lock loses no
// update, and the history says so.
func TestManyClientsOnOneLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 20
		tape, l, guard := newTape(), newLockFake(), NewGuard(true)
		stop := make(chan struct{})
		var loops sync.WaitGroup
		for i := range clients {
			e := env(newClientFake(l), tape, i, clients, 9)
			e.Guard, e.Params.Jitter = guard, 3*time.Millisecond
			e.Rand = rand.New(rand.NewPCG(9, uint64(i)))
			loops.Go(func() { mutexClient(t.Context(), stop, e) })
		}
		<-time.After(5 * time.Second)
		close(stop)
		loops.Wait()
		h := built(t, tape)
		if int64(len(h.Touches)) != guard.Read("orders") || len(h.Touches) < 300 {
			t.Errorf("%d writes, the counter is at %d", len(h.Touches), guard.Read("orders"))
		}
		served := map[history.Process]bool{}
		for _, touch := range h.Touches {
			served[touch.Process] = true
			if touch.Read != touch.Found || !touch.Accepted {
				t.Errorf("under a good lock: %+v", touch)
			}
		}
		if len(served) < clients/2 { // not all: the lock promises no fairness, and which waiter it wakes is chance
			t.Errorf("%d of %d clients were served", len(served), clients)
		}
	})
}
