package lock

import "sync"

// oldTombstones remembers, for each lock, one tombstone that nobody will ask for any
// more: the release that left it was answered, and no acquire of its hold is on
// its way. The next release of the lock removes it along with the lock itself, so
// that whoever takes and releases a lock without end has one tombstone at the server,
// and not all those of the last seconds. What is forgotten here ends by itself.
type oldTombstones struct {
	mu   sync.Mutex
	keys map[string]string // by the name of the lock
}

// spentMax bounds how many locks are remembered.
const maxOldTombstones = 4096

// take is the tombstone to remove with the lock of that name; empty: there is none.
func (s *oldTombstones) take(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.keys[name]
	if key != "" {
		s.keys[name] = "" // most often the next one comes soon
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
