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
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
)

var _ Proc = (*child.Process)(nil)

// roleVar makes this test binary a client of the kind that the variable names.
const roleVar = "LOCKCHAOS_CLIENT_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	os.Exit(play(role))
}

// play is a client process that behaves in the way that role says.
func play(role string) int {
	in := bufio.NewScanner(os.Stdin)
	switch role {
	case "native":
		if err := serve(context.Background(), os.Stdin, os.Stdout, singleLock(newMemory())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "dies": // in the middle of its first request
		in.Scan()
		return 3
	case "half": // writes half a line, and dies
		in.Scan()
		fmt.Print(`{"id":1,"type":"o`)
		return 0
	case "mute": // hears everything, also the end of its input, and says nothing
		for in.Scan() {
		}
		select {}
	case "hides": // closes its output and lives on
		in.Scan()
		_ = os.Stdout.Close()
		select {}
	case "deaf": // closes its input and lives on
		_ = os.Stdin.Close()
		fmt.Println(`{"event":"lost","key":"k"}`)
		select {}
	case "clings": // ends, and leaves behind a child in a session of its own that holds the output open
		in.Scan()
		heir := exec.Command("setsid", "sleep", "1")
		heir.Stdout = os.Stdout
		if err := heir.Start(); err != nil {
			return 1
		}
		return 0
	}
	return 2
}

// memory is a lock that lives in this process: a [Locker] for tests.
type memoryLocker struct {
	mu      sync.Mutex
	holders map[string]string
	free    chan struct{} // closed, and replaced, at every release
	tokens  uint64
}

func newMemory() *memoryLocker {
	return &memoryLocker{holders: map[string]string{}, free: make(chan struct{})}
}

var errBusy = errors.New("somebody has it")

func (m *memoryLocker) Acquire(ctx context.Context, a Ask) (Grant, error) {
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
		if !a.Wait {
			return Grant{}, errBusy
		}
		select {
		case <-free:
		case <-ctx.Done():
			return Grant{}, errBusy
		}
	}
}

func (m *memoryLocker) Renew(_ context.Context, key, owner string) (Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders[key] != owner {
		return Grant{}, ErrNotHeld
	}
	return Grant{Count: 1}, nil
}

func (m *memoryLocker) Release(_ context.Context, key, owner string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders[key] != owner {
		return 0, ErrNotHeld
	}
	delete(m.holders, key)
	close(m.free)
	m.free = make(chan struct{})
	return 0, nil
}

func (m *memoryLocker) Close(context.Context) error { return nil }

// singleLock is a catalogue of one lock, called memory.
func singleLock(l Locker) lookup {
	return func(name string) (Spec, error) {
		if name != "memory" {
			return Spec{}, fmt.Errorf("no lock is called %q", name)
		}
		return Spec{
			Name: name, Open: func(Setup, func(Reply)) (Locker, error) { return l, nil },
			Definite: func(err error) bool { return errors.Is(err, errBusy) },
			Code:     func(err error) string { return "busy" },
		}, nil
	}
}

// puppet is a client whose every word the test says itself.
type scriptedProcess struct {
	*Stdio
	hears *bufio.Scanner // what it is asked
	says  *io.PipeWriter
	proc  *fakeProc
}

// fakeProc is a process that has only ends of pipes.
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

func newPuppet() *scriptedProcess {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	proc := &fakeProc{end: func() { _, _ = inR.Close(), outW.Close() }}
	return &scriptedProcess{Stdio: NewStdio(inW, outR, proc), hears: bufio.NewScanner(inR), says: outW, proc: proc}
}

// hear is the next request; false if its input has ended.
func (p *scriptedProcess) hear() (r Request, ok bool) {
	if !p.hears.Scan() {
		return r, false
	}
	return r, json.Unmarshal(p.hears.Bytes(), &r) == nil
}

func (p *scriptedProcess) say(text string) { _, _ = io.WriteString(p.says, text+"\n") }

// start runs this test binary as a client of that kind.
func start(t *testing.T, role string) (*Stdio, *child.Process) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), roleVar+"="+role, "GORACE=atexit_sleep_ms=0") // or it lingers for a second
	p, err := child.Start(child.Spec{Path: self, Env: env, Pipes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return NewStdio(p.Stdin(), p.Stdout(), p), p
}

// soon is a context that no step of a good client outlasts.
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

// noLeaks fails the test if goroutines outlive it.
func noLeaks(t *testing.T) {
	t.Helper()
	// Its first use starts a process that stays.
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

// drained is everything that c was told, once it is gone.
func drain(c *StdioClient) []Reply {
	var all []Reply
	for r := range c.Notices() {
		all = append(all, r)
	}
	return all
}

// statusField is a number of KiB from /proc/PID/status.
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
