package sessions

import "sync"

// Marks are keys or nodes that the releases of a session write, one release at a time each: a release that was executed
// leaves its id in a mark, which proves that if its reply is lost. The zero value has none. Its methods may be called
// concurrently.
type Marks struct {
	mu   sync.Mutex
	free []string
}

// Take returns a mark that no release uses; "": there is none, and the release makes one.
func (m *Marks) Take() string {
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

// Keep returns a mark whose release was answered.
func (m *Marks) Keep(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, name)
}
