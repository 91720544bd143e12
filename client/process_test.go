package client

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// do sends r to c and fails the test without a reply.
func do(t *testing.T, c *StdioClient, r Request) Reply {
	t.Helper()
	reply, err := c.Do(testContext(t), r)
	if err != nil {
		t.Fatalf("%s: %v", r.Op, err)
	}
	return reply
}

func initialize(t *testing.T, c *StdioClient) {
	t.Helper()
	if reply := do(t, c, Request{Op: Init, Setup: &Setup{Lock: "memory"}}); reply.Type != "ok" {
		t.Fatalf("init: %+v", reply)
	}
}

func TestRealProcess(t *testing.T) {
	noLeaks(t)
	s, p := start(t, "native")
	c := s.Client("")
	initialize(t, c)
	if c.PID() == 0 || c.PID() != p.PID() {
		t.Errorf("PID %d, want that of the process, %d", c.PID(), p.PID())
	}
	for token := range uint64(3) {
		a := Acquire{Key: "k", Owner: "me", Wait: time.Minute, Lease: time.Minute}
		reply := do(t, c, Request{Op: "acquire", Acquire: a})
		if reply.Type != "ok" || reply.Token != token+1 || reply.Count != 1 {
			t.Fatalf("acquire: %+v", reply)
		}
		if v := reply.ValidFor(time.Second, MonotonicNow()); v <= 30*time.Second || v > time.Minute {
			t.Errorf("valid for %v, want a little less than a minute", v)
		}
		if reply := do(t, c, Request{Op: "release", Acquire: Acquire{Key: "k", Owner: "me"}}); reply.Type != "ok" {
			t.Fatalf("release: %+v", reply)
		}
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	drain(c)
	if c.PID() != 0 {
		t.Error("the process is still running")
	}
	if _, err := c.Do(testContext(t), Request{Op: "acquire"}); !errors.Is(err, ErrExited) {
		t.Errorf("after Close: %v, want ErrExited", err)
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestStoppedProcessRepliesLate(t *testing.T) {
	noLeaks(t)
	s, _ := start(t, "native")
	c := s.Client("")
	initialize(t, c)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	const late = time.Second // long after the request is on its way
	_, err := c.Do(timeoutContext(t, late), Request{Op: "acquire", Acquire: Acquire{Key: "k", Owner: "me"}})
	if !errors.Is(err, ErrTimeout) {
		t.Fatalf("a stopped client: %v, want ErrTimeout", err)
	}
	if err := c.Continue(); err != nil {
		t.Fatal(err)
	}
	if n := <-c.Notices(); n.Event != EventLate || n.Op != "acquire" || n.Type != "ok" {
		t.Errorf("notice %+v, want the late acquire", n)
	}
	reply := do(t, c, Request{Op: "try", Acquire: Acquire{Key: "k", Owner: "other"}})
	if reply.Type != "fail" || reply.Code != "busy" {
		t.Errorf("the late acquire left no hold: %+v", reply)
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestStopSuspendsWork: the critical section is suspended with its process.
func TestStopSuspendsWork(t *testing.T) {
	s, _ := start(t, "native")
	c := s.Client("")
	initialize(t, c)
	const work = 2000 // ms
	replied := make(chan error, 1)
	for { // until the process is stopped before the work is over, also on a busy machine
		go func() {
			_, err := c.Do(testContext(t), Request{Op: "work", Work: work * time.Millisecond})
			replied <- err
		}()
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond) // for a reply that was on its way
		if len(replied) == 0 {
			break
		}
		t.Log("REPEATED: the work was over before the process was stopped")
		if err := errors.Join(<-replied, c.Continue()); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After((work + 500) * time.Millisecond)
	if len(replied) != 0 {
		t.Error("work ended while the client was stopped")
	}
	if err := c.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := <-replied; err != nil {
		t.Error(err)
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestBadProcesses: whatever a client's process does, Do returns, the
// notices end, and the process has exited after Close.
func TestBadProcesses(t *testing.T) {
	const short, long = 300 * time.Millisecond, time.Minute
	for _, test := range []struct {
		role    string
		timeout time.Duration
		do      error
		close   error
		text    string
	}{
		{"exits", long, ErrExited, nil, `client exited: exit status 3; standard error ends with "no module redis"`},
		{"half", long, ErrProtocol, ErrProtocol, "unexpected end of JSON input"},
		{"silent", short, ErrTimeout, ErrTimeout, "did not reply in time"},
		{"stdout-closed", long, ErrExited, nil, "client exited: it closed its standard output"},
		{"stdin-closed", long, ErrExited, nil, "client exited: it closed its standard input"},
		{"orphan", short, nil, nil, ""}, // ErrTimeout, or ErrExited once the orphan has exited
	} {
		t.Run(test.role, func(t *testing.T) {
			noLeaks(t)
			s, p := start(t, test.role)
			c := s.Client("")
			if test.role == "stdin-closed" {
				<-c.Notices() // its input is closed now
			}
			_, err := c.Do(timeoutContext(t, test.timeout), Request{Op: "acquire", Acquire: Acquire{Key: "k"}})
			if test.do != nil && !errors.Is(err, test.do) || err == nil {
				t.Errorf("Do = %v, want %v", err, test.do)
			}
			if !strings.Contains(fmt.Sprint(err), test.text) {
				t.Errorf("Do = %v, want %q", err, test.text)
			}
			err = c.Close(timeoutContext(t, test.timeout))
			if test.close != nil && !errors.Is(err, test.close) {
				t.Errorf("Close = %v, want %v", err, test.close)
			}
			drain(c)
			if p.PID() != 0 {
				t.Errorf("process %d is still running", p.PID())
			}
		})
	}
}

func TestKillDuringARequest(t *testing.T) {
	noLeaks(t)
	s, _ := start(t, "native")
	c := s.Client("")
	initialize(t, c)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Do(testContext(t), Request{Op: "work", Work: time.Minute})
		failed <- err
	}()
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, ErrKilled) || !errors.Is(err, ErrExited) {
		t.Errorf("Do = %v, want ErrKilled", err)
	}
	drain(c)
	if err := c.Err(); !errors.Is(err, ErrKilled) {
		t.Errorf("Err = %v, want ErrKilled", err)
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Errorf("Close of a client that has exited = %v", err)
	}
}

// TestSeveralClientsInOneProcess: a slow one does not delay another.
func TestSeveralClientsInOneProcess(t *testing.T) {
	s, _ := start(t, "native")
	slow, quick := s.Client("slow"), s.Client("quick")
	initialize(t, slow)
	initialize(t, quick)
	slept := make(chan error, 1)
	go func() {
		_, err := slow.Do(timeoutContext(t, time.Minute), Request{Op: "work", Work: time.Minute})
		slept <- err
	}()
	for range 20 {
		do(t, quick, Request{Op: "acquire", Acquire: Acquire{Key: "k", Owner: "q", Wait: time.Minute}})
		do(t, quick, Request{Op: "release", Acquire: Acquire{Key: "k", Owner: "q"}})
	}
	select {
	case err := <-slept:
		t.Errorf("work of a minute ended (%v) before twenty quick acquires", err)
	default:
	}
	if err := quick.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	if err := slow.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-slept; !errors.Is(err, ErrExited) {
		t.Errorf("the work ended with %v, want ErrExited", err)
	}
	drain(slow)
	if err := slow.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestAThousandClientsInOneProcess: a thousand clients acquire the lock on one key, each once.
func TestAThousandClientsInOneProcess(t *testing.T) {
	const clients = 1000
	const maxPerClient = 64 << 10 // bytes, at the harness's end
	s, p := start(t, "native")
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all := make([]*StdioClient, clients)
	for i := range all {
		all[i] = s.Client(fmt.Sprint(i))
		initialize(t, all[i])
	}
	var wg sync.WaitGroup
	ctx := timeoutContext(t, time.Minute)
	tokens := make([]uint64, clients)
	began := time.Now()
	for i, c := range all {
		wg.Go(func() {
			owner := fmt.Sprint("owner ", i)
			reply, err := c.Do(ctx, Request{Op: "acquire", Acquire: Acquire{Key: "k", Owner: owner, Wait: time.Minute}})
			tokens[i] = reply.Token
			if err == nil && reply.Type == "ok" {
				reply, err = c.Do(ctx, Request{Op: "release", Acquire: Acquire{Key: "k", Owner: owner}})
			}
			if err != nil || reply.Type != "ok" {
				t.Errorf("client %d: %+v, %v", i, reply, err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	seen := map[uint64]bool{}
	for _, token := range tokens {
		seen[token] = true
	}
	if len(seen) != clients {
		t.Errorf("%d different tokens, want %d", len(seen), clients)
	}
	each := (int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)) / clients
	t.Logf("%d clients served in %v, %d bytes each at the harness, %s", clients, took.Round(time.Millisecond),
		each, resident(t, p))
	if each > maxPerClient {
		t.Errorf("%d bytes for each client, more than %d", each, maxPerClient)
	}
	for _, c := range all {
		wg.Go(func() {
			if err := c.Close(testContext(t)); err != nil {
				t.Error(err)
			}
			drain(c)
		})
	}
	wg.Wait()
	if p.PID() != 0 {
		t.Error("the process is still running")
	}
}

// resident returns the memory of the process, for the log.
func resident(t *testing.T, p *child.Process) string {
	t.Helper()
	kib, err := statusField(p.PID(), "VmRSS:")
	if err != nil {
		t.Fatal(err)
	}
	if limit := 64 << 10; kib > limit && !race.Enabled {
		t.Errorf("the process of a thousand clients has %d KiB", kib)
	}
	return fmt.Sprintf("%d KiB in their process", kib)
}
