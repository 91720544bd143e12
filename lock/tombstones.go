package lock

import "sync"

// oldTombstones remembers, for each lock, one tombstone that is no longer needed:
// its release was replied to, and no acquire of its hold is in flight. The next
// release of the lock removes it along with the lock itself, so that a client that
// takes and releases a lock without end leaves one tombstone at the server, and not
// all those of the last seconds. One that is not remembered expires by itself.
type oldTombstones struct {
	mu   sync.Mutex
	keys map[string]any // by the key of the lock: a string, as the word of a command
}

// maxOldTombstones bounds how many locks are remembered.
const maxOldTombstones = 4096

// take is the tombstone to remove with the lock at key; nil: none.
func (s *oldTombstones) take(lock string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.keys[lock]
	if key != nil {
		s.keys[lock] = nil // the next put is likely to come soon
	}
	return key
}

// put remembers the tombstone of a hold of the lock at key.
func (s *oldTombstones) put(lock string, tombstone any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil || len(s.keys) >= maxOldTombstones {
		s.keys = make(map[string]any)
	}
	s.keys[lock] = tombstone
}
