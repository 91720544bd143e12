package search

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// asSearch is set for this test program when it runs as the search process.
const asSearch = "LOCKCHAOS_TEST_SEARCH"

func TestMain(m *testing.M) {
	switch os.Getenv(asSearch) {
	case "":
		os.Exit(m.Run())
	case "hang":
		<-time.After(time.Hour)
	case "garbage":
		os.Stdout.WriteString("no answer")
		os.Exit(0)
	}
	if err := Serve(os.Stdin, os.Stdout); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// hardJob takes time and memory exponential in n: acquires of unknown outcome, each of which may have taken effect,
// and a try that failed when none of them can have.
func hardJob(n int) Job {
	j := Job{Kind: Semaphore, Permits: int32(n + 1)}
	for i := range n {
		op := Op{Call: 0, Return: 10, Owner: int32(i), Permits: 1, Pos: -1, Depth: -1, Write: true}
		j.Ops = append(j.Ops, op)
	}
	return Job{Kind: j.Kind, Permits: j.Permits, Ops: append(j.Ops,
		Op{Call: 20, Return: 21, Owner: int32(n), Permits: 1, Pos: -1, Depth: -1, Kind: OpBusyTry})}
}

// TestSearchInChild: the child process has the same findings as this process; if it hangs, writes garbage, cannot be
// started or needs too much memory, nothing is decided, and the error says why.
func TestSearchInChild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, mode string
		command    []string
		job        Job
		limit      time.Duration
		want       porcupine.CheckResult
		why        string
	}{
		{"illegal", "serve", []string{self}, hardJob(6), time.Minute, porcupine.Illegal, ""},
		{"out of time", "serve", []string{self}, hardJob(40), 200 * time.Millisecond, porcupine.Unknown, ""},
		{"hangs", "hang", []string{self}, hardJob(2), 100 * time.Millisecond, porcupine.Unknown, "deadline"},
		{"writes garbage", "garbage", []string{self}, hardJob(2), time.Minute, porcupine.Unknown, "reading the reply"},
		{"is not there", "serve", []string{filepath.Join(t.TempDir(), "none")}, hardJob(2), time.Second, porcupine.Unknown, "no such file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(asSearch, test.mode)
			got, err := searchInChild(test.command, test.job, test.limit)
			if test.why == "" && got == porcupine.Unknown && errors.Is(err, context.DeadlineExceeded) {
				err = nil // on a busy machine the child may be killed before it reports the end of its time, which is the same
			}
			if got != test.want || (err != nil) != (test.why != "") {
				t.Fatalf("got %v, %v; want %v", got, err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), test.why) {
				t.Errorf("got %q, want %q in it", err, test.why)
			}
		})
	}
}

// TestHardSearchUsesChild: a hard job is sent to the child process; if that finds nothing, the result is unknown,
// with a reason.
func TestHardSearchUsesChild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asSearch, "serve")
	step := func(_ string, do func()) { do() }
	s := NewSearcher(Options{Command: []string{self}, Limit: 400 * time.Millisecond, Step: step})
	if got, why := s.Search(hardJob(40)); got != porcupine.Unknown || why == "" {
		t.Errorf("got %v, %q", got, why)
	}
	t.Setenv(asSearch, "garbage")
	s = NewSearcher(Options{Command: []string{self}, Limit: 5 * time.Second, Step: step})
	if got, _ := s.Search(hardJob(4)); got != porcupine.Illegal {
		t.Errorf("an easy question got %v", got)
	}
}

func TestServeRefusesBadInput(t *testing.T) {
	for _, text := range []string{"", "{", `{"kind":6}`, `{"kind":200}`, `{"ops":[[1,2,3]],"kind":6}`} {
		if err := Serve(strings.NewReader(text), &bytes.Buffer{}); err == nil {
			t.Errorf("%q was answered", text)
		}
	}
}
