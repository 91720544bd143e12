package workloads

import (
	"context"
	"testing"
	"time"
)

// TestRamp: the first client begins at once and the last at the end of the ramp; nobody begins after the run.
func TestRamp(t *testing.T) {
	p := Params{Clients: 5, Ramp: 40 * time.Millisecond}
	for i, least := range []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 4: 40 * time.Millisecond} {
		began := time.Now()
		if !p.Begins(t.Context(), nil, i) {
			t.Fatal("the run was not over")
		}
		if took := time.Since(began); took < least {
			t.Errorf("client %d began after %v, want %v", i, took, least)
		}
	}
	p.Ramp = time.Hour
	stop := make(chan struct{})
	close(stop)
	if p.Begins(t.Context(), stop, 4) {
		t.Error("a client began when the run was over")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if p.Begins(ended, nil, 4) {
		t.Error("a client began when the run was abandoned")
	}
	if !(Params{Clients: 1, Ramp: time.Hour}).Begins(t.Context(), nil, 0) {
		t.Error("the only client does not begin")
	}
}
