package gate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// direction is one direction of everything between one caller and the server: the
// rule in force and what was done so far. Reading the rule takes no lock: it
// happens for every piece of data.
type direction struct {
	now                              atomic.Pointer[state]
	passed, waiting, dropped, resets atomic.Int64
	messages                         atomic.Int64

	mu   sync.Mutex
	free time.Time // when a line with a rate has sent what it was given so far
}

// due is when n bytes that are sent now have arrived, but for what is drawn.
func (l *direction) due(rule cluster.Rule, n int) time.Time {
	now := time.Now()
	if rule.Rate > 0 {
		l.mu.Lock()
		if l.free.Before(now) {
			l.free = now
		}
		l.free = l.free.Add(time.Duration(float64(n) / float64(rule.Rate) * float64(time.Second)))
		now = l.free
		l.mu.Unlock()
	}
	return now.Add(rule.Delay)
}

// state is a rule together with the event of its end.
type state struct {
	rule    cluster.Rule
	changed chan struct{} // closed when another state has taken its place
}

// set is called by one goroutine at a time (under Gate.mu).
func (l *direction) set(rule cluster.Rule) {
	old := l.now.Swap(&state{rule: rule, changed: make(chan struct{})})
	if rule.Rate == 0 {
		l.mu.Lock()
		l.free = time.Time{} // what an earlier line still had to send is sent
		l.mu.Unlock()
	}
	if old != nil {
		close(old.changed)
	}
}

func (l *direction) rule() cluster.Rule { return l.now.Load().rule }

func (l *direction) addTo(sum *cluster.Traffic) {
	sum.Passed += l.passed.Load()
	sum.Waiting += l.waiting.Load()
	sum.Dropped += l.dropped.Load()
	sum.Resets += l.resets.Load()
	sum.Messages += l.messages.Load()
}
