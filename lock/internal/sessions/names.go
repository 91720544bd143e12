package sessions

import "sync"

// Names are names of keys or nodes of a session that are free to be used again: each is used for one thing at a time.
// The zero value has none. Its methods may be called concurrently.
type Names struct {
	mu   sync.Mutex
	free []string
}

// Take returns a free name, which is free no longer; "": there is none, and the caller makes one.
func (m *Names) Take() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.free)
	if n == 0 {
		return ""
	}
	name := m.free[n-1]
	m.free = m.free[:n-1]
	return name
}

// Keep makes a name free. No request that uses it may be executed afterwards.
func (m *Names) Keep(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, name)
}
