package gate

import (
	"sync/atomic"

	"github.com/lockchaos/lockchaos/cluster"
)

// lane is one direction of everything between one caller and the server: the
// rule in force and what was done so far. Reading the rule takes no lock: it
// happens for every piece of data.
type lane struct {
	now                              atomic.Pointer[state]
	passed, waiting, dropped, resets atomic.Int64
}

// state is a rule together with the event of its end.
type state struct {
	rule    cluster.Rule
	changed chan struct{} // closed when another state has taken its place
}

// set is called by one goroutine at a time (under Gate.mu).
func (l *lane) set(rule cluster.Rule) {
	old := l.now.Swap(&state{rule: rule, changed: make(chan struct{})})
	if old != nil {
		close(old.changed)
	}
}

func (l *lane) rule() cluster.Rule { return l.now.Load().rule }

func (l *lane) addTo(sum *cluster.Traffic) {
	sum.Passed += l.passed.Load()
	sum.Waiting += l.waiting.Load()
	sum.Dropped += l.dropped.Load()
	sum.Resets += l.resets.Load()
}
