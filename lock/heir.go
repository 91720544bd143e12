package lock

import "time"

// handed is an acquire that was sent for a waiter, behind the release of the hold before.
type handed struct {
	pipe    *pipe
	request *request
	sent    time.Time
	since   time.Time // see granted.since
}

// handOver sends the next request of the first waiter for a channel, if it sleeps, and wakes it to await the reply.
func (s *waitQueues) handOver(channel string, send func(next call) *handed) bool {
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
	w.wakeUp()
	return true
}

// awake is called when w no longer sleeps for a reason of its own, as the end of its context: nothing is handed over to
// it from then on. It reports whether something was.
func (s *waitQueues) awake(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.asleep = false
	return w.handed != nil
}

// takeHanded is the request that was sent for w since it fell asleep; nil: none was, and none will be until it does so
// again.
func (s *waitQueues) takeHanded(w *waiter) *handed {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := w.handed
	w.asleep, w.handed = false, nil
	return h
}
