package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MultiLock is several locks taken as one. Those of one master, or of one slot of a
// cluster, are taken by one script, all or none. Others are taken in an order that
// is the same in every program (by server, slot and name), so that there is no
// deadlock (redisson#1160, redisson#4050), and renewed when all are held. At the
// servers they are mutexes like any others, and exclude them. Several goroutines may
// use it.
type MultiLock struct {
	groups []group
}

// group is locks that are taken together.
type group struct {
	client *Client
	names  []string
	fenced bool // one of them is, and so all are: one script takes them
}

// together reports whether the locks are taken by one script.
func (g group) together() bool { return g.client.node != nil && len(g.names) > 1 }

// MultiOptions of one acquire. The zero value is a good start.
type MultiOptions struct {
	// Owner is as in [AcquireOptions].
	Owner string
	// Lease is as in [AcquireOptions]; each of the locks gets it. If there is more than
	// one group, it must be long enough to take all of them within half of it.
	Lease time.Duration
	// Atomic refuses, with [ErrCrossSlot], what cannot be taken by one script.
	Atomic bool
}

// Multi is the locks of these names as one; at least one, and each once.
func (c *Client) Multi(names ...string) (*MultiLock, error) {
	mutexes := make([]*Mutex, len(names))
	for i, name := range names {
		mutexes[i] = c.Mutex(name)
	}
	return Multi(mutexes...)
}

// Multi is mutexes, of one client or of several, as one lock; at least one, and each once.
func Multi(mutexes ...*Mutex) (*MultiLock, error) {
	if len(mutexes) == 0 {
		return nil, errors.New("make a lock of several: there are none: give at least one")
	}
	seen := make(map[ownerKey]bool, len(mutexes))
	for _, m := range mutexes {
		if m == nil {
			return nil, errors.New("make a lock of several: one of them is nil")
		}
		if err := checkName(m.name); err != nil {
			return nil, fmt.Errorf("make a lock of several: %w", err)
		}
		key := ownerKey{m.client, m.name}
		if seen[key] {
			return nil, fmt.Errorf("make a lock of several: %q is named twice: name it once", m.name)
		}
		seen[key] = true
	}
	return &MultiLock{groups: grouped(mutexes)}, nil
}

// grouped sorts mutexes and groups those that one script can take.
func grouped(mutexes []*Mutex) []group {
	sorted := slices.SortedStableFunc(slices.Values(mutexes), func(a, b *Mutex) int {
		return cmp.Or(
			cmp.Compare(a.client.addrs, b.client.addrs),
			cmp.Compare(slotOf(a.name), slotOf(b.name)),
			cmp.Compare(a.name, b.name),
		)
	})
	var groups []group
	for _, m := range sorted {
		last := len(groups) - 1
		if last >= 0 && groups[last].fits(m) {
			groups[last].names = append(groups[last].names, m.name)
			groups[last].fenced = groups[last].fenced || m.fenced
			continue
		}
		groups = append(groups, group{m.client, []string{m.name}, m.fenced})
	}
	return groups
}

func (g group) fits(m *Mutex) bool {
	if g.client != m.client || g.client.node == nil {
		return false
	}
	return g.client.node.cluster == nil || slotOf(g.names[0]) == slotOf(m.name)
}

// bySlot divides groups by slot: what looks like one master may be the proxy of a
// cluster (redisson#6867).
func bySlot(groups []group) []group {
	var out []group
	for _, g := range groups {
		from := 0
		for i := range g.names {
			if i+1 == len(g.names) || slotOf(g.names[i]) != slotOf(g.names[i+1]) {
				out = append(out, group{g.client, g.names[from : i+1], g.fenced})
				from = i + 1
			}
		}
	}
	return out
}

// Acquire waits until it has all of the locks, or ctx ends. Errors are those of [Mutex.Acquire].
func (m *MultiLock) Acquire(ctx context.Context, o MultiOptions) (*MultiHold, error) {
	h, err := m.gather(ctx, o, true)
	return h, failed("acquire", "locks", m.names(), err)
}

// TryAcquire takes the locks if all are free now. Errors are those of [Mutex.Acquire].
func (m *MultiLock) TryAcquire(ctx context.Context, o MultiOptions) (*MultiHold, error) {
	h, err := m.gather(ctx, o, false)
	return h, failed("try to acquire", "locks", m.names(), err)
}

func (m *MultiLock) names() string {
	var all []string
	for _, g := range m.groups {
		all = append(all, g.names...)
	}
	return strings.Join(all, ", ")
}

// gather takes the groups in rounds: a round that gets stuck, because another
// program has another order, releases everything and starts again.
func (m *MultiLock) gather(ctx context.Context, o MultiOptions, wait bool) (*MultiHold, error) {
	c := m.groups[0].client
	r := &round{groups: m.groups, o: o, wait: wait}
	if r.o.Owner == "" {
		r.newOwner = c.random.id()
	}
	if o.Atomic && len(r.groups) > 1 {
		return nil, ErrCrossSlot
	}
	for {
		again, err := r.run(ctx)
		switch {
		case err == nil:
			return newMultiHold(ctx, r.holds), nil
		case errors.Is(err, ErrCrossSlot) && !o.Atomic && len(bySlot(r.groups)) > len(r.groups):
			r.groups = bySlot(r.groups)
			continue
		case !again || !wait || ctx.Err() != nil:
			return nil, c.stopped(ctx, err)
		}
		if !c.pause(ctx, c.random.between(time.Millisecond, min(c.o.PollMax, patienceUnit)/4)) {
			return nil, c.stopped(ctx, err)
		}
	}
}
