package lock

import (
	"sync"
	"time"
)

// oldTombstones remembers, for each lock, tombstones that are no longer needed: their releases were replied to, and
// no acquire of their holds is in flight. When there are enough, the next release of the lock removes them together
// with the lock, so a client that acquires and releases a lock in a loop leaves only a few tombstones on the server,
// and not all of the last seconds. Tombstones that are not in this list expire by themselves.
type oldTombstones struct {
	mu   sync.Mutex
	keys map[string][]any // by the key of the lock: strings, as the words of a command
}

const (
	// tombstoneBatch is how many tombstones of a lock one release removes: removing one takes the server nearly as long as
	// removing all of them.
	tombstoneBatch = 8
	// maxOldTombstones bounds how many locks are remembered.
	maxOldTombstones = 1024
	// maxTombstoneTTL is the longest lease of a lock that becomes the tombstone of its hold.
	maxTombstoneTTL = time.Minute
)

// take are the tombstones to remove with the lock at key.
func (s *oldTombstones) take(lock string) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.keys[lock]
	if len(keys) < tombstoneBatch {
		return nil
	}
	s.keys[lock] = nil // the next put is likely to come soon
	return keys
}

// put remembers the tombstone of a hold of the lock at key.
func (s *oldTombstones) put(lock string, tombstone any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, known := s.keys[lock]
	if s.keys == nil || !known && len(s.keys) >= maxOldTombstones {
		s.keys = make(map[string][]any)
	}
	if keys == nil {
		keys = make([]any, 0, tombstoneBatch)
	}
	s.keys[lock] = append(keys, tombstone)
}

// outlasts reports whether a lock can become the tombstone of its hold, by the time that is left of its lease: the last
// request of a release arrives within timeout, and its tombstone has to last for two timeouts more, as others do, but
// not for much longer.
func outlasts(left, timeout time.Duration) bool {
	return left >= 3*timeout && left <= maxTombstoneTTL
}
