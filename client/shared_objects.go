package client

import (
	"context"
	"sync"
)

// SharesInstances returns row with an Open that opens one lock for all clients with the same [Setup.Instance], as the
// goroutines of a program share one. The setup of the first counts. Call it once for each process.
func SharesInstances(row Spec) Spec {
	open := row.Open
	if open == nil {
		return row
	}
	all := &instances{named: map[string]*instance{}}
	row.Open = func(s Setup, notify func(Reply)) (Locker, error) {
		if s.Instance == "" {
			return open(s, notify)
		}
		return all.open(s, notify, open)
	}
	return row
}

// instances are the locks that clients share.
type instances struct {
	mu    sync.Mutex
	named map[string]*instance
}

// instance is a lock that several clients use. What it reports goes to the client whose owner it is about.
type instance struct {
	Locker
	all  *instances
	name string

	opened chan struct{} // closed when Locker or failed is set
	failed error

	mu      sync.Mutex
	members int
	clients map[string]func(Reply) // by owner
	first   func(Reply)            // gets replies about no owner
}

// open opens an instance, or joins it.
func (s *instances) open(
	setup Setup, notify func(Reply), open func(Setup, func(Reply)) (Locker, error),
) (Locker, error) {
	i, first := s.join(setup.Instance, notify)
	if first { // without the mutex: a lock that connects would stall virtual time
		i.Locker, i.failed = open(setup, i.notify)
		close(i.opened)
	}
	<-i.opened
	if i.failed != nil {
		i.leave()
		return nil, i.failed
	}
	return &member{i, notify}, nil
}

// join adds a member to an instance, and reports whether it is the first, which opens it.
func (s *instances) join(name string, notify func(Reply)) (i *instance, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i = s.named[name]
	if first = i == nil; first {
		i = &instance{
			all: s, name: name, clients: map[string]func(Reply){}, first: notify, opened: make(chan struct{}),
		}
		s.named[name] = i
	}
	i.members++
	return i, first
}

// notify passes a notice on to its client.
func (i *instance) notify(r Reply) {
	i.mu.Lock()
	to, known := i.clients[r.Owner]
	i.mu.Unlock()
	if !known {
		to = i.first
	}
	to(r)
}

// leave reports whether the last client has left.
func (i *instance) leave() (last bool) {
	i.all.mu.Lock()
	defer i.all.mu.Unlock()
	if i.members--; i.members == 0 {
		delete(i.all.named, i.name)
	}
	return i.members == 0
}

// member is an instance as one of its clients sees it.
type member struct {
	*instance
	notify func(Reply)
}

// Acquire notes whose owner it is.
func (m *member) Acquire(ctx context.Context, a Acquire) (Grant, error) {
	m.note(a.Owner)
	return m.Locker.Acquire(ctx, a)
}

// note notes that an owner is of this client.
func (m *member) note(owner string) {
	m.instance.mu.Lock()
	defer m.instance.mu.Unlock()
	m.clients[owner] = m.notify
}

// Close closes the instance with its last client.
func (m *member) Close(ctx context.Context) error {
	if !m.leave() {
		return nil
	}
	return m.Locker.Close(ctx)
}
