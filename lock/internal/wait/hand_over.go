package wait

import (
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Handed is an acquire that was sent for a waiter, behind the release of the hold before.
type Handed struct {
	Pipe    *wire.Pipe
	Request *wire.Request
	Sent    time.Time
	Since   time.Time // when its client was granted the lock without a release by itself
}

// HandOver sends the next request of the first waiter for a channel, if it sleeps, and wakes it to await the reply.
func (s *Queues) HandOver(channel string, send func(next wire.Call) *Handed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.channels[channel]
	if q == nil || len(q.waiters) == 0 {
		return false
	}
	w := q.waiters[0]
	if !w.asleep || !w.prepared {
		return false
	}
	w.handed = send(w.next)
	if w.handed == nil {
		return false
	}
	w.WakeUp(0)
	return true
}

// Awake is called when w stops sleeping: nothing is handed over to it from then on. It reports whether something was.
func (s *Queues) Awake(w *Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.asleep, w.delayed = false, w.delayed && len(w.Wake) > 0
	return w.handed != nil
}

// TakeHanded is the request that was sent for w since it fell asleep; nil: none was, and none will be until it does so
// again.
func (s *Queues) TakeHanded(w *Waiter) *Handed {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := w.handed
	w.asleep, w.handed = false, nil
	return h
}
