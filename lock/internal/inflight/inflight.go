// Package inflight limits how many requests wait for the reply of each of several masters.
package inflight

import "sync"

const (
	// maxProbes is how many requests at a time a master gets that does not reply. Each user who tries again would leave
	// another goroutine behind there.
	maxProbes = 8
	// MaxBehind is how many requests may wait for a master that has more of them than all other masters together: users
	// have moved on with a majority.
	MaxBehind = 256
)

// Masters are the requests in flight to each master. It is safe for concurrent use.
type Masters struct {
	mu   sync.Mutex
	list []master
}

type master struct {
	waiting int
	silent  bool // a request timed out, and no reply has come since
}

// New is for n masters, to which nothing was sent yet.
func New(n int) *Masters { return &Masters{list: make([]master, n)} }

// Admit counts a request to master i as sent, unless too many are without a reply: then it reports false.
func (m *Masters) Admit(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	to, all := &m.list[i], 0
	for _, other := range m.list {
		all += other.waiting
	}
	if to.silent && to.waiting >= maxProbes || to.waiting >= MaxBehind && 2*to.waiting > all {
		return false
	}
	to.waiting++
	return true
}

// Done ends a request to master i that was admitted, with or without a reply.
func (m *Masters) Done(i int, replied bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list[i].waiting--
	m.list[i].silent = !replied
}

// Stopped ends a request to master i that was admitted and whose reply nobody waited for, or that was not sent.
func (m *Masters) Stopped(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list[i].waiting--
}

// Waiting is how many requests wait for the reply of master i.
func (m *Masters) Waiting(i int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list[i].waiting
}
