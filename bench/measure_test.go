package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSum(t *testing.T) {
	r := round{took: 2 * time.Second}
	r.sum([][]time.Duration{{1, 2, 3}, nil, {4}}, 12)
	if r.perSecond != 2 || r.perGrant != 3 || r.p50 != 3 || r.p99 != 4 || r.max != 4 || r.starved != 1 {
		t.Errorf("%+v", r)
	}
	m := medians([]round{{perSecond: 1}, {perSecond: 9, starved: 2}, {perSecond: 3}})
	if m.perSecond != 3 || m.starved != 2 {
		t.Errorf("medians %+v, want 3 per second and at most 2 starved", m)
	}
}

// Every subject excludes: two goroutines that hold one key for 1 ms each get it at most 1,000 times per second.
func TestSubjectsExclude(t *testing.T) {
	ctx := context.Background()
	srv, err := startServer(ctx)
	if err != nil {
		t.Skip(err)
	}
	defer srv.stop()
	all, err := open(srv.addr, ours, oursFair, rueidisSubject,
		redislockEvery("redislock-10ms", 10*time.Millisecond), redsyncSubject)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(all)
	for _, s := range all {
		r, err := apply(ctx, srv, s, load{n: 2, span: 100 * time.Millisecond, drain: drainContended, hold: time.Millisecond,
			key: func(int) string { return "k" }})
		if err != nil || r.perSecond == 0 || r.perSecond > 1000 || r.perGrant < 1 {
			t.Errorf("%s: %+v, %v: more than one holder at a time, or nothing was counted", s.name, r, err)
		}
	}
}

// A subject that ignores the end of its context blocks neither the round nor the program.
func TestStuckSubject(t *testing.T) {
	done := make(chan worked, 2)
	done <- worked{took: []time.Duration{1}}
	all, err := collect(done, 2, time.Millisecond)
	if len(all) != 1 || !errors.Is(err, errStuck) {
		t.Errorf("%d goroutines, %v, want one and errStuck", len(all), err)
	}
	hang := make(chan struct{})
	defer close(hang)
	if err := bounded(time.Millisecond, func() error { <-hang; return nil }); !errors.Is(err, errStuck) {
		t.Errorf("%v, want errStuck", err)
	}
}
