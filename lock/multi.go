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

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// MultiLock is several locks of any kind, and permits of semaphores, taken as one. Mutexes of one master, or of one
// slot of a cluster, are taken by one script, all or none, if no other lock comes between them. All others are taken
// in an order that is the same in every program (by server, slot and name), so there is no deadlock (redisson#1160,
// redisson#4050), and renewed when all are held; if one is not granted in time, the ones before it are released. While
// their slot migrates, mutexes of one slot are taken in this way too, unless [WithAtomic] is given. On the servers they
// are ordinary locks, and exclude holders of the single locks. A waiter that releases its locks, because a lock further
// on was held for too long, loses its place in the queue of a [FairMutex] or a [FairSemaphore]. Several goroutines may
// use it.
type MultiLock struct {
	groups []group
}

// group is locks that are taken together.
type group struct {
	client *Client
	parts  []part
	fenced bool // one of them is, and so all are: one script takes them
}

// names lists the names of the locks in the order in which they are taken.
func (g group) names() []string {
	names := make([]string, len(g.parts))
	for i, p := range g.parts {
		names[i] = p.name
	}
	return names
}

// together reports whether the locks are taken by one script.
func (g group) together() bool { return g.client.node != nil && len(g.parts) > 1 }

// Multi returns the mutexes of these names as one lock; at least one name, and each once. Its options apply to Acquire.
func (c *Client) Multi(names ...string) (*MultiLock, error) {
	locks := make([]AnyLock, len(names))
	for i, name := range names {
		locks[i] = c.Mutex(name)
	}
	return Multi(locks...)
}

// Multi returns locks of any kind, of one client or of several, as one lock; at least one, and each name once: both
// sides of one [RW] are refused. Options are given to Acquire, and apply to each lock that supports them: permits have
// no owner, and permits of a [Semaphore] no lease. A lock that was created with options is refused, except for
// [WithTotal]. With a client of several masters, only a [Mutex] can be part of it, because no other kind of lock is
// kept on several masters.
func Multi(locks ...AnyLock) (*MultiLock, error) {
	if len(locks) == 0 {
		return nil, errors.New("make a lock of several: there are none: give at least one")
	}
	parts := make([]part, len(locks))
	seen := make(map[ownerKey]bool, len(locks))
	for i, one := range locks {
		if one == nil || reflect.ValueOf(one).IsNil() {
			return nil, errors.New("make a lock of several: one of them is nil")
		}
		m := one.part()
		err := checkName(m.key)
		if err == nil {
			err = m.check()
		}
		if err == nil && m.oneMaster && !m.client.single {
			err = fmt.Errorf("%q: %w", m.name, ErrOneMaster)
		}
		if err == nil && m.client.o.Layout == Redisson {
			err = fmt.Errorf("%q: %w", m.name, ErrLayout)
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

// grouped sorts locks, and puts locks that one script can take into one group.
func grouped(locks []part) []group {
	sorted := slices.SortedStableFunc(slices.Values(locks), func(a, b part) int {
		return cmp.Or(
			cmp.Compare(a.client.addrs, b.client.addrs),
			cmp.Compare(wire.SlotOf(a.key), wire.SlotOf(b.key)),
			cmp.Compare(a.key, b.key),
		)
	})
	var groups []group
	for _, m := range sorted {
		last := len(groups) - 1
		if last >= 0 && groups[last].fits(m) {
			groups[last].parts = append(groups[last].parts, m)
			groups[last].fenced = groups[last].fenced || m.fenced
			continue
		}
		groups = append(groups, group{m.client, []part{m}, m.fenced})
	}
	return groups
}

func (g group) fits(m part) bool {
	if g.client != m.client || g.client.node == nil || !m.bundled || !g.parts[0].bundled {
		return false
	}
	return !g.client.node.IsCluster() || wire.SlotOf(g.parts[0].key) == wire.SlotOf(m.key)
}

// bySlot divides groups by slot: an apparent master may be the proxy of a cluster (redisson#6867).
func bySlot(groups []group) []group {
	var out []group
	for _, g := range groups {
		from := 0
		for i := range g.parts {
			if i+1 == len(g.parts) || wire.SlotOf(g.parts[i].key) != wire.SlotOf(g.parts[i+1].key) {
				out = append(out, group{g.client, g.parts[from : i+1], g.fenced})
				from = i + 1
			}
		}
	}
	return out
}

// singly divides groups into locks that are taken one after the other.
func singly(groups []group) (out []group) {
	for _, g := range groups {
		for i, p := range g.parts {
			out = append(out, group{g.client, g.parts[i : i+1], p.fenced})
		}
	}
	return out
}

// Acquire waits until it has all of the locks, or ctx ends. Errors are as of [Mutex.Acquire], and [ErrCrossSlot].
// With [WithLease], each of the locks gets that lease; if they are not all taken by one script, it must be long
// enough to take them within half of it.
//
// While it holds some of the locks, it waits for another one for one to two times Options.PollMax, at most 2 s and
// less if its lease is short; then it releases them and starts again. It waits longer for a reply: while a server
// hangs, the locks may stay held for up to Options.Timeout more, and if the server has not replied by then, the error
// is [ErrUnknown].
func (m *MultiLock) Acquire(ctx context.Context, opts ...Option) (*MultiHold, error) {
	h, err := m.gather(ctx, opts, true)
	return h, failed("acquire", "locks", m.names(), err)
}

// TryAcquire takes the locks if all are free now. Errors are as of Acquire.
func (m *MultiLock) TryAcquire(ctx context.Context, opts ...Option) (*MultiHold, error) {
	h, err := m.gather(ctx, opts, false)
	return h, failed("try to acquire", "locks", m.names(), err)
}

// Do is like [Mutex.Do]; for the tokens of the locks, use Acquire and [MultiHold.Token].
func (m *MultiLock) Do(ctx context.Context, work func(ctx context.Context) error, opts ...Option) error {
	h, err := m.Acquire(ctx, opts...)
	if err != nil {
		return err
	}
	return do(ctx, h, work)
}

// separateReason is why one script cannot take the locks.
func (m *MultiLock) separateReason() error {
	for _, g := range m.groups {
		if p := g.parts[0]; !p.bundled {
			return fmt.Errorf("%w: %q is not a mutex, and one script takes only mutexes: leave WithAtomic out",
				ErrNotAtomic, p.name)
		}
	}
	return ErrCrossSlot
}

// Names are the names of the locks, in the order in which they are taken.
func (m *MultiLock) Names() []string {
	var all []string
	for _, g := range m.groups {
		all = append(all, g.names()...)
	}
	return all
}

func (m *MultiLock) names() string { return strings.Join(m.Names(), ", ") }

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
		r.newOwner = c.random.ID()
	}
	if o.atomic && len(r.groups) > 1 {
		return nil, m.separateReason()
	}
	ctx, cancel := limitWait(parent, o.wait)
	defer cancel()
	for {
		again, err := r.run(ctx)
		if again && r.refused != nil && !errors.Is(err, ErrHeld) && ended(ctx) {
			// A request that was cut short says less than the refusal before it.
			err = definiteError{r.refused, Undone(err)}
		}
		switch {
		case err == nil:
			return newMultiHold(parent, r.holds), nil
		case errors.Is(err, ErrCrossSlot) && !o.atomic && len(bySlot(r.groups)) > len(r.groups):
			r.groups = bySlot(r.groups)
			continue
		case isMigrating(err) && Definite(err) && !o.atomic && len(singly(r.groups)) > len(r.groups):
			r.groups = singly(r.groups)
			continue
		case !again || !wait || ctx.Err() != nil:
			return nil, c.stopped(ctx, err)
		}
		if !c.pause(ctx, c.random.Between(time.Millisecond, min(c.o.PollMax, multiBackoffUnit)/4)) {
			return nil, c.stopped(ctx, err)
		}
	}
}
