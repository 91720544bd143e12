package gate

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// direction is one direction of all connections between one caller and the server:
// its current rule and counts. Reading the rule, for every chunk, takes no lock.
type direction struct {
	current                          atomic.Pointer[state]
	passed, waiting, dropped, resets atomic.Int64
	messages, twice, refused         atomic.Int64
	accepted                         atomic.Bool

	mu     sync.Mutex
	idleAt time.Time // with a rate: when everything read so far has been sent
}

// due is when n bytes that are sent now arrive, without jitter.
func (d *direction) due(rule cluster.Rule, n int) time.Time {
	now := time.Now()
	if rule.Rate > 0 {
		d.mu.Lock()
		if d.idleAt.Before(now) {
			d.idleAt = now
		}
		d.idleAt = d.idleAt.Add(time.Duration(float64(n) / float64(rule.Rate) * float64(time.Second)))
		now = d.idleAt
		d.mu.Unlock()
	}
	return now.Add(rule.Delay)
}

// state is a rule with the event of its replacement.
type state struct {
	rule    cluster.Rule
	heldBy  time.Time     // for Rule.Once
	changed chan struct{} // closed when it is no longer current
}

// set replaces the rule. It is called by one goroutine at a time (under Gate.mu).
func (d *direction) set(rule cluster.Rule) {
	next := &state{rule: rule, heldBy: rule.HeldBy, changed: make(chan struct{})}
	if next.heldBy.IsZero() {
		next.heldBy = time.Now()
	}
	old := d.current.Swap(next)
	if rule.Rate == 0 {
		d.mu.Lock()
		d.idleAt = time.Time{} // bytes that an earlier rule delayed are sent now
		d.mu.Unlock()
	}
	if old != nil {
		close(old.changed)
	}
}

func (d *direction) rule() cluster.Rule { return d.current.Load().rule }

func (d *direction) addTo(sum *cluster.Traffic) {
	sum.Passed += d.passed.Load()
	sum.Waiting += d.waiting.Load()
	sum.Dropped += d.dropped.Load()
	sum.Resets += d.resets.Load()
	sum.Messages += d.messages.Load()
	sum.Twice += d.twice.Load()
	sum.Refused += d.refused.Load()
	sum.Accepted = sum.Accepted || d.accepted.Load()
}

// look counts a reply of Redis by its first bytes: whether it refuses the caller for want of a password.
func (d *direction) look(reply []byte) {
	if len(reply) > 0 && reply[0] == '-' {
		for _, refusal := range []string{"-NOAUTH", "-WRONGPASS", "-ERR invalid password"} {
			if bytes.HasPrefix(reply, []byte(refusal)) {
				d.refused.Add(1)
				return
			}
		}
	}
	if !d.accepted.Load() {
		d.accepted.Store(true)
	}
}
