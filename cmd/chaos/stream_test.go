package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// limit bounds the wait for something that should happen at once, also on a busy machine.
const limit = 2 * time.Minute

// TestStreamVerdicts judges each foreign history from a pipe.
func TestStreamVerdicts(t *testing.T) {
	tests := []struct {
		file, flags string
		code        int
		message     string
	}{
		{"two-holders.edn", "", exitUnsafe, "both held the lock"},
		{"two-holders.edn", "--property fencing", exitInconclusive, "fencing"},
		{"etcd.edn", "", exitSafe, "judged as a stream, without damage, honesty, hold-count"},
		{"hazelcast.edn", "--dialect hazelcast", exitInconclusive, "its lease had ended, which the stream learned only after"},
		{"hazelcast.edn", "--dialect hazelcast --property linearizable", exitUsage, "--stream cannot judge linearizable"},
		{"etcd.edn", "--format text", exitUsage, "lines may be in any order"},
	}
	for _, test := range tests {
		text, err := os.ReadFile(filepath.Join("testdata/histories", test.file))
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		args := append([]string{"check", "--stream", "-"}, strings.Fields(test.flags)...)
		code := run(args, streams{in: bytes.NewReader(text), out: &out, err: &errs})
		if code != test.code || !strings.Contains(out.String()+errs.String(), test.message) {
			t.Errorf("%s %s: exit %d, want %d and %q in\n%s%s", test.file, test.flags, code, test.code, test.message,
				&out, &errs)
		}
	}
	if code, _, errs := chaos("check", "--follow", "x"); code != exitUsage || !strings.Contains(errs, "--follow needs --stream") {
		t.Errorf("--follow alone: exit %d, %s", code, errs)
	}
	text := filepath.Join(t.TempDir(), "h")
	if err := os.WriteFile(text, []byte("clients 3\nclient 0 acquire k 1-2 ok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := chaos("check", "--stream", text); code != exitUsage || !strings.Contains(errs, "any order") {
		t.Errorf("text: exit %d, %s", code, errs)
	}
}

// output collects the output of a program, and signals each write.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (h *output) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case h.more <- struct{}{}:
	default:
	}
	return h.text.Write(b)
}

func (h *output) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// wait waits until what was written.
func (h *output) wait(t *testing.T, what string) {
	t.Helper()
	deadline := time.After(limit)
	for !strings.Contains(h.String(), what) {
		select {
		case <-h.more:
		case <-deadline:
			t.Fatalf("%q was not written in %v:\n%s", what, limit, h)
		}
	}
}

// TestStreamOverPipe: a verdict on a pipe that is written event by event.
func TestStreamOverPipe(t *testing.T) {
	text, err := os.ReadFile("testdata/histories/two-holders.edn")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	r, w := io.Pipe()
	out, errs := &output{more: make(chan struct{}, 1)}, &output{more: make(chan struct{}, 1)}
	ended := make(chan int, 1)
	go func() { ended <- run([]string{"check", "--stream", "-"}, streams{in: r, out: out, err: errs}) }()
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	select {
	case code := <-ended:
		if code != exitUnsafe || !strings.Contains(out.String(), "UNSAFE") {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
	case <-time.After(limit):
		t.Fatal("no verdict")
	}
}

// TestFollow appends to a file that is judged, and interrupts. It runs in a
// process of its own because of the signal.
func TestFollow(t *testing.T) {
	text, err := os.ReadFile("testdata/histories/two-holders.edn")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.edn")
	lines := bytes.SplitAfter(text, []byte("\n"))
	if err := os.WriteFile(path, bytes.Join(lines[:2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "check", "--stream", "--follow", path)
	out, errs := &output{more: make(chan struct{}, 1)}, &output{more: make(chan struct{}, 1)}
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	errs.wait(t, "waiting for more")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(bytes.Join(lines[2:], nil)); err != nil {
		t.Fatal(err)
	}
	errs.wait(t, "VIOLATED")
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = c.Wait()
	if c.ProcessState.ExitCode() != exitUnsafe || !strings.Contains(out.String(), "UNSAFE") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
}
