package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
)

var _ Proc = (*child.Process)(nil)

// roleVar makes this test binary the client process that the variable names.
const roleVar = "LOCKCHAOS_CLIENT_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	os.Exit(play(role))
}

// play runs the client process called role.
func play(role string) int {
	in := bufio.NewScanner(os.Stdin)
	switch role {
	case "native":
		if err := Serve(context.Background(), os.Stdin, os.Stdout, singleLock(newMemoryLocker())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "exits": // during its first request
		in.Scan()
		fmt.Fprintln(os.Stderr, "no module redis")
		return 3
	case "half": // exits after half a line
		in.Scan()
		fmt.Print(`{"id":1,"type":"o`)
		return 0
	case "silent": // reads everything, ignores EOF, never replies
		for in.Scan() {
		}
		select {}
	case "stdout-closed": // keeps running
		in.Scan()
		_ = os.Stdout.Close()
		select {}
	case "stdin-closed": // keeps running
		_ = os.Stdin.Close()
		fmt.Println(`{"event":"lost","key":"k"}`)
		select {}
	case "orphan": // exits, and leaves a child in a session of its own that keeps the output open
		in.Scan()
		orphan := exec.Command("setsid", "sleep", "1")
		orphan.Stdout = os.Stdout
		if err := orphan.Start(); err != nil {
			return 1
		}
		return 0
	}
	return 2
}

// memoryLocker is a correct lock in this process.
type memoryLocker struct {
	mu      sync.Mutex
	holders map[string]string
	free    chan struct{} // closed, and replaced, at every release
	tokens  uint64
}

func newMemoryLocker() *memoryLocker {
	return &memoryLocker{holders: map[string]string{}, free: make(chan struct{})}
}

var errBusy = errors.New("lock is held")

func (m *memoryLocker) Acquire(ctx context.Context, a Acquire) (Grant, error) {
	for {
		m.mu.Lock()
		if _, held := m.holders[a.Key]; !held {
			m.holders[a.Key] = a.Owner
			m.tokens++
			g := Grant{Token: m.tokens, Count: 1, Deadline: time.Now().Add(a.Lease)}
			m.mu.Unlock()
			return g, nil
		}
		free := m.free
		m.mu.Unlock()
		if a.Wait == 0 {
			return Grant{}, errBusy
		}
		select {
		case <-free:
		case <-ctx.Done():
			return Grant{}, errBusy
		}
	}
}

func (m *memoryLocker) Renew(_ context.Context, h Hold, _ time.Duration) (Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders[h.Key] != h.Owner {
		return Grant{}, ErrNotHeld
	}
	return Grant{Count: 1}, nil
}

func (m *memoryLocker) Release(_ context.Context, h Hold) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders[h.Key] != h.Owner {
		return 0, ErrNotHeld
	}
	delete(m.holders, h.Key)
	close(m.free)
	m.free = make(chan struct{})
	return 0, nil
}

func (m *memoryLocker) Close(context.Context) error { return nil }

// singleLock is the lookup of a catalog with one lock, called memory.
func singleLock(l Locker) Lookup {
	return func(name string) (Spec, error) {
		if name != "memory" {
			return Spec{}, fmt.Errorf("unknown lock %q", name)
		}
		return Spec{
			Name: name, Open: func(Setup, func(Reply)) (Locker, error) { return l, nil },
			Definite: func(err error) bool { return errors.Is(err, errBusy) },
			Code:     func(err error) string { return "busy" },
		}, nil
	}
}

// singleRow is the row that singleLock finds.
func singleRow(l Locker) Spec {
	row, err := singleLock(l)("memory")
	if err != nil {
		panic(err)
	}
	return row
}

// scriptedProcess is a client process whose output the test writes.
type scriptedProcess struct {
	*Stdio
	in   *bufio.Scanner // its standard input
	out  *io.PipeWriter // its standard output
	proc *fakeProc
}

// fakeProc is a process of which only the pipes exist.
type fakeProc struct {
	mu   sync.Mutex
	dead bool
	end  func()
}

func (p *fakeProc) Stop() error     { return nil }
func (p *fakeProc) Continue() error { return nil }
func (p *fakeProc) PID() int        { return 0 }

func (p *fakeProc) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	p.end()
	return nil
}

func (p *fakeProc) killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func newScriptedProcess() *scriptedProcess {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	proc := &fakeProc{end: func() { _, _ = inR.Close(), outW.Close() }}
	return &scriptedProcess{Stdio: NewStdio(inW, outR, proc), in: bufio.NewScanner(inR), out: outW, proc: proc}
}

// read returns the next request; false at the end of the input.
func (p *scriptedProcess) read() (r Request, ok bool) {
	if !p.in.Scan() {
		return r, false
	}
	return r, json.Unmarshal(p.in.Bytes(), &r) == nil
}

func (p *scriptedProcess) print(text string) { _, _ = io.WriteString(p.out, text+"\n") }

// start runs this test binary as the client process called role.
func start(t *testing.T, role string) (*Stdio, *child.Process) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), roleVar+"="+role, "GORACE=atexit_sleep_ms=0") // no second of sleep at exit
	log := filepath.Join(t.TempDir(), "log")
	p, err := child.Start(child.Spec{Path: self, Env: env, Pipes: true, Stderr: log, MaxStderr: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return NewStdio(p.Stdin(), p.Stdout(), p), p
}

// testContext ends long after any step of a correct client.
func testContext(t *testing.T) context.Context {
	t.Helper()
	return timeoutContext(t, 20*time.Second)
}

func timeoutContext(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// noLeaks fails the test if it leaves goroutines behind.
func noLeaks(t *testing.T) {
	t.Helper()
	// The first start of a child starts a helper process that keeps running.
	if p, err := child.Start(child.Spec{Path: "true"}); err != nil || p.Wait() != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; <-tick.C {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<16)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
}

// drain waits for the exit of c and returns its unread notices.
func drain(c *StdioClient) []Reply {
	var all []Reply
	for r := range c.Notices() {
		all = append(all, r)
	}
	return all
}

// statusField returns a number of KiB from /proc/PID/status.
func statusField(pid int, name string) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), name)
	var kib int
	_, err = fmt.Sscan(rest, &kib)
	return kib, err
}
