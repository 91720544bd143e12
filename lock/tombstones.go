package lock

import "sync"

// oldTombstones remembers, for each lock, one tombstone that is no longer needed:
// its release was replied to, and no acquire of its hold is in flight. The next
// release of the lock removes it along with the lock itself, so that a client that
// takes and releases a lock without end leaves one tombstone at the server, and not
// all those of the last seconds. One that is not remembered expires by itself.
type oldTombstones struct {
	mu   sync.Mutex
	keys map[string]string // by the name of the lock
}

// maxOldTombstones bounds how many locks are remembered.
const maxOldTombstones = 4096

// take is the tombstone to remove with the lock of that name; empty: none.
func (s *oldTombstones) take(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.keys[name]
	if key != "" {
		s.keys[name] = "" // the next put is likely to come soon
	}
	return key
}

// put remembers the tombstone of a hold of the lock of that name.
func (s *oldTombstones) put(name, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil || len(s.keys) >= maxOldTombstones {
		s.keys = make(map[string]string)
	}
	s.keys[name] = key
}
