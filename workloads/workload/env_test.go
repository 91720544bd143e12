package workload

import (
	"context"
	"testing"
	"time"
)

// TestRamp: the first client starts at once and the last at the end of the ramp; none starts after the run.
func TestRamp(t *testing.T) {
	p := Params{Clients: 5, Ramp: 40 * time.Millisecond}
	for i, least := range []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 4: 40 * time.Millisecond} {
		start := time.Now()
		if !p.Begins(t.Context(), nil, i) {
			t.Fatalf("client %d did not start", i)
		}
		if took := time.Since(start); took < least {
			t.Errorf("client %d started after %v, want %v", i, took, least)
		}
	}
	p.Ramp = time.Hour
	stop := make(chan struct{})
	close(stop)
	if p.Begins(t.Context(), stop, 4) {
		t.Error("a client started after the run")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if p.Begins(ended, nil, 4) {
		t.Error("a client started after the run was abandoned")
	}
	if !(Params{Clients: 1, Ramp: time.Hour}).Begins(t.Context(), nil, 0) {
		t.Error("the only client did not start")
	}
}

// TestWaitEndsWithTheRun: the acquire timeout is bounded by the end of the run.
func TestWaitEndsWithTheRun(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		3 * time.Second: 3 * time.Second,
		-time.Hour:      time.Millisecond,
		time.Hour:       time.Minute,
	} {
		e := Env{Params: Params{Wait: time.Minute}, Left: func() time.Duration { return left }}
		if got := e.AcquireTimeout(); got != want {
			t.Errorf("wait %v with %v left, want %v", got, left, want)
		}
	}
}
