package client

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
)

// do asks c and fails the test if it cannot answer.
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
		reply := do(t, c, Request{Op: "acquire", Key: "k", Owner: "me", WaitMS: 100, LeaseMS: 60_000})
		if reply.Type != "ok" || reply.Token != token+1 || reply.Count != 1 {
			t.Fatalf("acquire: %+v", reply)
		}
		if v := reply.ValidFor(time.Second, Mono()); v <= 30*time.Second || v > time.Minute {
			t.Errorf("valid for %v, want a little less than a minute", v)
		}
		if reply := do(t, c, Request{Op: "release", Key: "k", Owner: "me"}); reply.Type != "ok" {
			t.Fatalf("release: %+v", reply)
		}
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	drain(c)
	if c.PID() != 0 {
		t.Error("the process is still there")
	}
	if _, err := c.Do(testContext(t), Request{Op: "acquire"}); !errors.Is(err, ErrExited) {
		t.Errorf("asked after Close: %v, want ErrGone", err)
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestStoppedProcessAnswersAfterwards(t *testing.T) {
	noLeaks(t)
	s, _ := start(t, "native")
	c := s.Client("")
	initialize(t, c)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	const late = 50 * time.Millisecond
	if _, err := c.Do(timeoutContext(t, late), Request{Op: "acquire", Key: "k", Owner: "me"}); !errors.Is(err, ErrTimeout) {
		t.Fatalf("a stopped client: %v, want ErrLate", err)
	}
	if err := c.Continue(); err != nil {
		t.Fatal(err)
	}
	if n := <-c.Notices(); n.Event != EventLate || n.Op != "acquire" || n.Type != "ok" {
		t.Errorf("notice %+v, want the late acquire", n)
	}
	if reply := do(t, c, Request{Op: "try", Key: "k", Owner: "other"}); reply.Type != "fail" || reply.Code != "busy" {
		t.Errorf("the late acquire left no hold: %+v", reply)
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestStopIsForTheWorkToo: the critical section stands still with its process.
func TestStopIsForTheWorkToo(t *testing.T) {
	s, _ := start(t, "native")
	c := s.Client("")
	initialize(t, c)
	const work = 500 // ms; it is stopped before they are over
	answered := make(chan error, 1)
	go func() {
		_, err := c.Do(testContext(t), Request{Op: "work", MS: work})
		answered <- err
	}()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan bool)
	go func() {
		<-time.After(2 * work * time.Millisecond)
		select {
		case <-answered:
			stopped <- false
		default:
			stopped <- true
		}
	}()
	if !<-stopped {
		t.Error("its work ended while the client stood still, or before it was stopped")
	}
	if err := c.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := c.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestBadProcesses: whatever a client's process does, Do comes back, the
// notices end, and the process is gone after Close.
func TestBadProcesses(t *testing.T) {
	const short, long = 300 * time.Millisecond, 10 * time.Second
	for _, test := range []struct {
		role     string
		patience time.Duration
		do       error
		close    error
	}{
		{"dies", long, ErrExited, nil},
		{"half", long, ErrProtocol, ErrProtocol},
		{"mute", short, ErrTimeout, ErrTimeout},
		{"hides", long, ErrExited, nil},
		{"deaf", long, ErrExited, nil},
		{"clings", short, nil, nil}, // late, or gone when the heir is
	} {
		t.Run(test.role, func(t *testing.T) {
			noLeaks(t)
			s, p := start(t, test.role)
			c := s.Client("")
			if test.role == "deaf" {
				<-c.Notices() // from now on its input is closed
			}
			_, err := c.Do(timeoutContext(t, test.patience), Request{Op: "acquire", Key: "k"})
			if test.do != nil && !errors.Is(err, test.do) || err == nil {
				t.Errorf("Do = %v, want %v", err, test.do)
			}
			err = c.Close(timeoutContext(t, test.patience))
			if test.close != nil && !errors.Is(err, test.close) {
				t.Errorf("Close = %v, want %v", err, test.close)
			}
			drain(c)
			if p.PID() != 0 {
				t.Errorf("process %d is still there", p.PID())
			}
		})
	}
}

func TestKilledProcessIsGoneInTheMiddleOfARequest(t *testing.T) {
	noLeaks(t)
	s, _ := start(t, "native")
	c := s.Client("")
	initialize(t, c)
	asked := make(chan error, 1)
	go func() {
		_, err := c.Do(testContext(t), Request{Op: "work", MS: 60_000})
		asked <- err
	}()
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-asked; !errors.Is(err, ErrExited) {
		t.Errorf("Do = %v, want ErrGone", err)
	}
	drain(c)
	if err := c.Close(testContext(t)); err != nil {
		t.Errorf("Close of a client that is gone = %v", err)
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
		_, err := slow.Do(timeoutContext(t, time.Minute), Request{Op: "work", MS: 60_000})
		slept <- err
	}()
	for range 20 {
		do(t, quick, Request{Op: "acquire", Key: "k", Owner: "q", WaitMS: 100})
		do(t, quick, Request{Op: "release", Key: "k", Owner: "q"})
	}
	select {
	case err := <-slept:
		t.Errorf("twenty quick acquires took longer than a minute of work beside them (%v)", err)
	default:
	}
	if err := quick.Close(testContext(t)); err != nil {
		t.Error(err)
	}
	if err := slow.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-slept; !errors.Is(err, ErrExited) {
		t.Errorf("the work ended with %v, want ErrGone", err)
	}
	drain(slow)
	if err := slow.Close(testContext(t)); err != nil {
		t.Error(err)
	}
}

// TestAThousandClientsInOneProcess has a thousand contenders on one key, each
// of which gets the lock once.
func TestAThousandClientsInOneProcess(t *testing.T) {
	const clients = 1000
	const mostPerClient = 64 << 10 // bytes, of the harness's end
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
			reply, err := c.Do(ctx, Request{Op: "acquire", Key: "k", Owner: owner, WaitMS: 60_000})
			tokens[i] = reply.Token
			if err == nil && reply.Type == "ok" {
				reply, err = c.Do(ctx, Request{Op: "release", Key: "k", Owner: owner})
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
	if each > mostPerClient {
		t.Errorf("%d bytes for each client, more than %d", each, mostPerClient)
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
		t.Error("the process is still there")
	}
}

// resident is how much memory the process has, for the log.
func resident(t *testing.T, p *child.Process) string {
	t.Helper()
	kib, err := statusField(p.PID(), "VmRSS:")
	if err != nil {
		t.Fatal(err)
	}
	if most := 64 << 10; kib > most && !raceDetector {
		t.Errorf("the process of a thousand clients has %d KiB", kib)
	}
	return fmt.Sprintf("%d KiB in their process", kib)
}
