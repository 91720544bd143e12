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
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// run is one client of workload mutex with that script, stopped at the stopAt-th request.
func run(t *testing.T, script func(n int, r client.Request) (*client.Reply, error), stopAt int) (*workloadtest.Tape, *workloadtest.Client) {
	t.Helper()
	tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
	if script != nil {
		c.Script = script
	}
	mutexClient(t.Context(), workloadtest.StopAfter(c, stopAt), workloadtest.Env(c, tape, 0, 3, 1))
	return tape, c
}

func TestMutexRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := run(t, nil, 4)
		want := []string{
			"0 acquire invoke", "0 acquire ok", "0 work invoke", "0 work ok", "0 touch ok", "0 release invoke", "0 release ok",
			"0 acquire invoke", "0 acquire ok", "0 work invoke", "0 work ok", "0 touch ok", "0 release invoke", "0 release ok",
		}
		if diff := cmp.Diff(want, tape.Words()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		want3 := []client.Request{
			{Op: "acquire", Acquire: client.Acquire{Key: "orders", Owner: "c0-1", Wait: time.Second, Lease: time.Second}},
			{Op: "work", Acquire: client.Acquire{Key: "orders", Owner: "c0-1"}, Work: 10 * time.Millisecond},
			{Op: "release", Acquire: client.Acquire{Key: "orders", Owner: "c0-1"}},
		}
		if diff := cmp.Diff(want3, c.Requests[:3]); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if owner := c.Requests[3].Owner; owner != "c0-2" {
			t.Errorf("the second hold has owner %s, want one of its own", owner)
		}
		h := tape.History(t)
		for i, touch := range h.Touches {
			if touch.Token != uint64(i+1) || touch.Read != int64(i) || touch.Found != int64(i) {
				t.Errorf("touch %d: %+v", i, touch)
			}
		}
	})
}

// TestMutexAfterEachOutcome: the operation after a failed one or one of unknown outcome, and its process.
func TestMutexAfterEachOutcome(t *testing.T) {
	fail, info := &client.Reply{Type: "fail", Code: "held"}, &client.Reply{Type: "info", Code: "unknown"}
	timeout, exited := fmt.Errorf("%w: work", client.ErrTimeout), client.ErrExited
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
		{"acquire: timeout", "acquire", nil, timeout, []string{
			"0 acquire invoke", "0 acquire info client-timeout", "3 acquire invoke"}},
		{"work failed", "work", fail, nil, []string{
			"0 work invoke", "0 work fail held", "0 release invoke", "0 release ok", "0 acquire invoke"}},
		{"work unknown: no touch, another process", "work", info, nil, []string{
			"0 work invoke", "0 work info unknown", "3 release invoke", "3 release ok", "3 acquire invoke"}},
		{"release unknown", "release", info, nil, []string{
			"0 release invoke", "0 release info unknown", "3 acquire invoke"}},
		{"acquire: exited", "acquire", nil, exited, []string{
			"0 acquire invoke", "0 acquire info client-exited", "0 crash info client-exited"}},
		{"work: exited", "work", nil, exited, []string{
			"0 work invoke", "0 work info client-exited", "0 crash info client-exited"}},
		{"release: protocol error", "release", nil, client.ErrProtocol, []string{
			"0 release invoke", "0 release info client-protocol", "0 crash info client-protocol"}},
		{"acquire: another error", "acquire", nil, errors.New("x"), []string{
			"0 acquire invoke", "0 acquire info client-error", "3 acquire invoke"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := false
				tape, _ := run(t, func(_ int, r client.Request) (*client.Reply, error) {
					if errors.Is(test.err, client.ErrExited) && done {
						return nil, test.err
					}
					if r.Op != test.op || done {
						return nil, nil
					}
					done = true
					return test.reply, test.err
				}, 6)
				words := tape.Words()
				for len(words) > 0 && words[0] != test.want[0] {
					words = words[1:]
				}
				if diff := cmp.Diff(test.want, words[:min(len(words), len(test.want))]); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if over := errors.Is(test.err, exited) || errors.Is(test.err, client.ErrProtocol); over && len(words) > len(test.want) {
					t.Errorf("requests after the end: %v", words[len(test.want):])
				}
				tape.History(t)
			})
		})
	}
}

// TestMutexBacksOff: a client whose acquire fails at once waits before it retries.
func TestMutexBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		run(t, func(int, client.Request) (*client.Reply, error) { return &client.Reply{Type: "fail"}, nil }, 100)
		if took := time.Since(start); took < 99*10*time.Millisecond || took > 99*50*time.Millisecond {
			t.Errorf("100 requests in %v", took)
		}
	})
}

func TestMutexStopsPromptly(t *testing.T) {
	stopped := func(t *testing.T, after time.Duration, e func(*workload.Env), script *client.Reply) time.Duration {
		t.Helper()
		c := workloadtest.NewClient(workloadtest.NewLock())
		c.Script = func(int, client.Request) (*client.Reply, error) { return script, nil }
		one := workloadtest.Env(c, workloadtest.NewTape(), 0, 1, 1)
		e(&one)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			mutexClient(t.Context(), stop, one)
			close(ended)
		}()
		<-time.After(after)
		start := time.Now()
		close(stop)
		<-ended
		return time.Since(start)
	}
	for _, test := range []struct {
		name   string
		env    func(*workload.Env)
		script *client.Reply
		want   time.Duration
	}{
		{"while thinking", func(e *workload.Env) { e.Params.Think = time.Hour }, nil, 0},
		{"while backing off", func(*workload.Env) {}, &client.Reply{Type: "fail"}, 0},
		{"in the critical section, which is completed", func(e *workload.Env) { e.Params.Hold = time.Second }, nil,
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

// TestMutexIsAbandoned: when ctx ends, the outcome of an acquire that waits is unknown.
func TestMutexIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, l := workloadtest.NewTape(), workloadtest.NewLock()
		l.GiveTo("another", "orders")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		e := workloadtest.Env(workloadtest.NewClient(l), tape, 0, 1, 1)
		start := time.Now()
		mutexClient(ctx, make(chan struct{}), e)
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if diff := cmp.Diff([]string{"0 acquire invoke", "0 acquire info client-timeout"}, tape.Words()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// requestsOf are the requests that a seed makes.
func requestsOf(t *testing.T, seed uint64) []string {
	c := workloadtest.NewClient(workloadtest.NewLock())
	e := workloadtest.Env(c, workloadtest.NewTape(), 0, 1, seed)
	e.Params.Keys, e.Params.Jitter = 7, 5*time.Millisecond
	mutexClient(t.Context(), workloadtest.StopAfter(c, 60), e)
	var all []string
	for _, r := range c.Requests {
		all = append(all, fmt.Sprint(r.Op, r.Key, r.Work))
	}
	return all
}

func TestSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, same, other := requestsOf(t, 1), requestsOf(t, 1), requestsOf(t, 2)
		if diff := cmp.Diff(one, same); diff != "" {
			t.Errorf("one seed, two runs:\n%s", diff)
		}
		if cmp.Equal(one, other) {
			t.Error("two seeds make the same choices")
		}
	})
}

// TestManyClientsOnOneLock: with a correct lock no update is lost.
func TestManyClientsOnOneLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 20
		tape, l, guard := workloadtest.NewTape(), workloadtest.NewLock(), session.NewGuard(true)
		stop := make(chan struct{})
		var loops sync.WaitGroup
		for i := range clients {
			e := workloadtest.Env(workloadtest.NewClient(l), tape, i, clients, 9)
			e.Guard, e.Params.Jitter = guard, 3*time.Millisecond
			e.Rand = rand.New(rand.NewPCG(9, uint64(i)))
			loops.Go(func() { mutexClient(t.Context(), stop, e) })
		}
		<-time.After(5 * time.Second)
		close(stop)
		loops.Wait()
		h := tape.History(t)
		if int64(len(h.Touches)) != guard.Read("orders") || len(h.Touches) < 300 {
			t.Errorf("%d writes, the counter is at %d", len(h.Touches), guard.Read("orders"))
		}
		served := map[history.Process]bool{}
		for _, touch := range h.Touches {
			served[touch.Process] = true
			if touch.Read != touch.Found || !touch.Accepted {
				t.Errorf("lost or rejected: %+v", touch)
			}
		}
		if len(served) < clients/2 { // not all: the lock is not fair
			t.Errorf("%d of %d clients were served", len(served), clients)
		}
	})
}

// TestMutexGivesLateGrantsBack: a grant that is not valid for as long as the work takes is released at once, if a whole
// lease would have been enough, and the client asks again.
func TestMutexGivesLateGrantsBack(t *testing.T) {
	for _, test := range []struct {
		name  string
		lease time.Duration
		valid float64 // of the first grant, in milliseconds
		back  bool
	}{
		{"late", time.Second, 9, true},
		{"in time", time.Second, 11, false},
		{"no validity", time.Second, 0, false},
		{"work that outlives its lease", 10 * time.Millisecond, 9, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
				c.Script = func(n int, _ client.Request) (*client.Reply, error) {
					if n == 1 {
						return &client.Reply{Type: "ok", ValidMS: test.valid, MonoNS: time.Now().UnixNano()}, nil
					}
					return nil, nil
				}
				e := workloadtest.Env(c, tape, 0, 1, 1)
				e.Params.Lease = test.lease
				mutexClient(t.Context(), workloadtest.StopAfter(c, 3), e)
				if back := c.Requests[1].Op == history.Release; back != test.back {
					t.Errorf("given back: %v, want %v; events %v", back, test.back, tape.Words())
				}
			})
		})
	}
}
