package evidence

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// indexSessions finds the client of each session: the samples of a key with a session and no name of an owner are
// compared with the holds at that time, and most of those of a session have to be of one client.
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
			return unknownHolder()
		}
		return named(h.Client, k.Mode, false)
	}
	asked := r.lastAcquire(key, c, s.Time)
	if asked == nil {
		return named(c, k.Mode, false)
	}
	h, granted := r.HoldNamed(key, r.OwnerName(asked.Owner))
	return named(c, k.Mode, granted && h.To < s.Sent && h.Ended >= 0)
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
