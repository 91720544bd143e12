package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
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
	parts  []named
	fenced bool // one of them is, and so all are: one script takes them
}

// together reports whether the locks are taken by one script.
func (g group) together() bool { return g.client.node != nil && len(g.parts) > 1 }

// AnyMutex is a [Mutex] or a [FencedMutex].
type AnyMutex interface{ part() *Mutex }

func (m *Mutex) part() *Mutex { return m }

// Multi is the locks of these names as one; at least one, and each once. Options are given to Acquire.
func (c *Client) Multi(names ...string) (*MultiLock, error) {
	mutexes := make([]AnyMutex, len(names))
	for i, name := range names {
		mutexes[i] = c.Mutex(name)
	}
	return Multi(mutexes...)
}

// Multi is mutexes, of one client or of several, as one lock; at least one, and each once. It has no use for their
// options: its own are given to Acquire.
func Multi(mutexes ...AnyMutex) (*MultiLock, error) {
	if len(mutexes) == 0 {
		return nil, errors.New("make a lock of several: there are none: give at least one")
	}
	parts := make([]*Mutex, len(mutexes))
	seen := make(map[ownerKey]bool, len(mutexes))
	for i, one := range mutexes {
		if one == nil || reflect.ValueOf(one).IsNil() {
			return nil, errors.New("make a lock of several: one of them is nil")
		}
		m := one.part()
		err := checkName(m.key)
		if err == nil && m.options.given != 0 {
			err = fmt.Errorf("%q has options of its own (%s): give them to Acquire", m.name, m.options.given)
		}
		if err == nil && m.fenced && !m.client.single {
			err = ErrOneMaster
		}
		key := ownerKey{m.client, m.key}
		if err == nil && seen[key] {
			err = fmt.Errorf("%q is named twice: name it once", m.name)
		}
		if err != nil {
			return nil, fmt.Errorf("make a lock of several: %w", err)
		}
		seen[key], parts[i] = true, m
	}
	return &MultiLock{groups: grouped(parts)}, nil
}

// grouped sorts mutexes and groups those that one script can take.
func grouped(mutexes []*Mutex) []group {
	sorted := slices.SortedStableFunc(slices.Values(mutexes), func(a, b *Mutex) int {
		return cmp.Or(
			cmp.Compare(a.client.addrs, b.client.addrs),
			cmp.Compare(slotOf(a.key), slotOf(b.key)),
			cmp.Compare(a.key, b.key),
		)
	})
	var groups []group
	for _, m := range sorted {
		last := len(groups) - 1
		if last >= 0 && groups[last].fits(m) {
			groups[last].parts = append(groups[last].parts, m.named)
			groups[last].fenced = groups[last].fenced || m.fenced
			continue
		}
		groups = append(groups, group{m.client, []named{m.named}, m.fenced})
	}
	return groups
}

func (g group) fits(m *Mutex) bool {
	if g.client != m.client || g.client.node == nil {
		return false
	}
	return g.client.node.cluster == nil || slotOf(g.parts[0].key) == slotOf(m.key)
}

// bySlot divides groups by slot: what looks like one master may be the proxy of a
// cluster (redisson#6867).
func bySlot(groups []group) []group {
	var out []group
	for _, g := range groups {
		from := 0
		for i := range g.parts {
			if i+1 == len(g.parts) || slotOf(g.parts[i].key) != slotOf(g.parts[i+1].key) {
				out = append(out, group{g.client, g.parts[from : i+1], g.fenced})
				from = i + 1
			}
		}
	}
	return out
}

// Acquire waits until it has all of the locks, or ctx ends. Errors are those of [Mutex.Acquire], and [ErrCrossSlot].
// With a lease of its own ([WithLease]) each of the locks gets it; if they are not all taken by one script, it must be
// long enough to take them within half of it.
func (m *MultiLock) Acquire(ctx context.Context, opts ...Option) (*MultiHold, error) {
	h, err := m.gather(ctx, opts, true)
	return h, failed("acquire", "locks", m.names(), err)
}

// TryAcquire takes the locks if all are free now. Errors are those of Acquire.
func (m *MultiLock) TryAcquire(ctx context.Context, opts ...Option) (*MultiHold, error) {
	h, err := m.gather(ctx, opts, false)
	return h, failed("try to acquire", "locks", m.names(), err)
}

// Do is as [Mutex.Do].
func (m *MultiLock) Do(ctx context.Context, work func(ctx context.Context) error, opts ...Option) error {
	h, err := m.Acquire(ctx, opts...)
	if err != nil {
		return err
	}
	return do(ctx, h, work)
}

func (m *MultiLock) names() string {
	var all []string
	for _, g := range m.groups {
		for _, p := range g.parts {
			all = append(all, p.name)
		}
	}
	return strings.Join(all, ", ")
}

// gather takes the groups in rounds: a round that gets stuck, because another
// program has another order, releases everything and starts again.
func (m *MultiLock) gather(parent context.Context, opts []Option, wait bool) (*MultiHold, error) {
	c := m.groups[0].client
	o := c.plain.with(opts)
	if err := o.check("a lock of several", multiOptions); err != nil {
		return nil, err
	}
	r := &round{groups: m.groups, o: o, wait: wait}
	if o.owner == "" {
		r.newOwner = c.random.id()
	}
	if o.atomic && len(r.groups) > 1 {
		return nil, ErrCrossSlot
	}
	ctx, cancel := limitWait(parent, o.wait)
	defer cancel()
	for {
		again, err := r.run(ctx)
		switch {
		case err == nil:
			return newMultiHold(parent, r.holds), nil
		case errors.Is(err, ErrCrossSlot) && !o.atomic && len(bySlot(r.groups)) > len(r.groups):
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
