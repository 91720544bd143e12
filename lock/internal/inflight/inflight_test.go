package inflight_test

import (
	"testing"

	"github.com/lockchaos/lockchaos/lock/internal/inflight"
)

// admitted sends requests to master i until one is refused, and returns how many were not.
func admitted(m *inflight.Masters, i int) (n int) {
	for n < 2*inflight.MaxBehind && m.Admit(i) {
		n++
	}
	return n
}

func TestMasterWithoutReplies(t *testing.T) {
	m := inflight.New(3)
	if n := admitted(m, 2); n != inflight.MaxBehind {
		t.Errorf("%d requests were sent to a master that has not replied yet, want %d", n, inflight.MaxBehind)
	}
	m.Done(2, false) // a timeout
	for m.Waiting(2) > 0 {
		m.Stopped(2) // says nothing about the master
	}
	if n := admitted(m, 2); n != 8 {
		t.Errorf("%d requests were sent to a silent master, want 8", n)
	}
	m.Done(2, true)
	if n := admitted(m, 2); n != inflight.MaxBehind-7 {
		t.Errorf("%d requests were sent to a master that replies again, want %d", n, inflight.MaxBehind-7)
	}
}

// All masters are as busy as each other: none is behind.
func TestBusyMasters(t *testing.T) {
	m := inflight.New(3)
	for range 2 * inflight.MaxBehind {
		for i := range 3 {
			if !m.Admit(i) {
				t.Fatalf("refused with %d in flight", m.Waiting(i))
			}
		}
	}
}
