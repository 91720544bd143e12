package evidence

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// indexSessions finds the client of each session: the samples of a key with a session and no name of an owner are
// compared with the holds at that time, and most samples of a session have to be of one client.
func (r *Run) indexSessions() {
	seen := map[string]map[int]int{} // session → client → samples
	for s := range Each(r.Samples) {
		for key, k := range s.Keys {
			if k.Session == "" || k.Owner != "" {
				continue
			}
			if h := r.holdAround(key, s.Time); h != nil && h.From <= s.Sent && s.Time <= h.To {
				if seen[k.Session] == nil {
					seen[k.Session] = map[int]int{}
				}
				seen[k.Session][h.Client]++
			}
		}
	}
	r.sessionOf = map[string]int{}
	for session, clients := range seen {
		all := 0
		for _, n := range clients {
			all += n
		}
		for c, n := range clients {
			if 2*n > all {
				r.sessionOf[session] = c
			}
		}
	}
}

// heldBySession is who holds a key that names a session and no owner: its client, by the acquire that it sent last. The
// session of a client that never held the lock is unknown, unless somebody holds it then.
func (r *Run) heldBySession(key string, k history.KeyState, s *history.Sample) KeyHolder {
	c, known := r.sessionOf[k.Session]
	if !known {
		h := r.holdAround(key, s.Time)
		if h == nil || h.From > s.Time || h.To < s.Sent {
			return unknownHolder(k)
		}
		return named(h.Client, k, false)
	}
	asked := r.lastAcquire(key, c, s.Time)
	if asked == nil {
		return named(c, k, false)
	}
	h, granted := r.HoldNamed(key, r.OwnerName(asked.Owner))
	return named(c, k, granted && h.To < s.Sent && h.Ended >= 0)
}

// lastAcquire is the last acquire or try of a client at a key that was invoked by t; nil if there is none.
func (r *Run) lastAcquire(key string, client int, t time.Duration) *history.Span {
	spans := r.History.Spans
	n := sort.Search(len(spans), func(i int) bool { return spans[i].Call > t })
	for i := n - 1; i >= max(n-1024, 0); i-- {
		s := &spans[i]
		acquires := Taking(s)
		if acquires && r.ClientIn(s.Process) == client && r.KeyName(s.Key) == key {
			return s
		}
	}
	return nil
}

// holdAround is the hold to which a key with a session belongs at t: its acquire was requested, and its release was
// not; otherwise the last hold before. nil: there is none.
func (r *Run) holdAround(key string, t time.Duration) *Hold {
	n := sort.Search(len(r.Holds), func(i int) bool { return r.Holds[i].From > t })
	var last *Hold
	for i := n - 1; i >= max(n-64, 0); i-- {
		h := &r.Holds[i]
		if r.KeyName(h.Key) != key {
			continue
		}
		if last == nil {
			last = h
		}
		if h.To >= t {
			return h
		}
	}
	for i := n; i < min(n+8, len(r.Holds)); i++ { // granted at the server, and the reply is on its way
		if h := &r.Holds[i]; r.KeyName(h.Key) == key && h.Asked <= t {
			return h
		}
	}
	return last
}
