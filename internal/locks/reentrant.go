package locks

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
)

// reentrantSpec is the mutex of package lock on one master, alone or behind Sentinel.
func reentrantSpec() client.Spec {
	row := kindRow("reentrant", "package lock's reentrant mutex: a hash with owner and count, Lua scripts, watchdog, "+
		"pub/sub, fencing tokens.",
		"Redisson's RLock, made idempotent (redisson#7367)", kind{
			acquire: acquireHold(fencedMutex), force: forceMutex,
			inspect: inspectMutex, labeled: true, bounded: true, reentrant: true,
		})
	row.Can, row.PersistentKeys = row.Can.With(promise.ProgramsTakeTurns|promise.Inspect|promise.Guard|
		promise.DistinguishesNotOwner), fencedKeys
	return row
}

// library is a [Locker] on package lock.
type library struct {
	kind
	conns   []redis.UniversalClient
	lock    *lock.Client
	notify  func(client.Reply)
	permits *permitOwners
	holds   *holds
	maxHold time.Duration // for how long the watchdog renews a hold; 0: no limit
	lease   time.Duration // of holds that request none
	poll    time.Duration // longest sleep of a waiter; 0: as in package lock
	events  events
	fences  fences
	guarded atomic.Int64  // how often Guard was called
	seed    uint64        // of this client
	closed  chan struct{} // by Close
	reopen  func() (*lock.Client, error)
	connect func() error                               // sets conns
	order   func(server string, command func() string) // see Setup.Order; may be nil

	contexts bool // see usesContexts
	varied   bool // see optionCalls
}

// newClientFunc makes a client of package lock.
type newClientFunc func(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error)

func newClient(conns []redis.UniversalClient, o lock.Options) (*lock.Client, error) {
	return lock.New(conns[0], o)
}

// opener returns the Open of a [Spec].
func opener(k kind) func(client.Setup, func(client.Reply)) (client.Locker, error) {
	return func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
		l := &library{
			kind: k, notify: notify, permits: newPermitOwners(), holds: newHolds(),
			contexts: usesContexts(s.Seed), closed: make(chan struct{}), seed: s.Seed,
			order: s.Order,
		}
		options := lockOptions{Options: lock.Options{
			Rand: rand.NewPCG(s.Seed, 1), Order: s.Order,
			OnRenewed:        l.renewed,
			OnPermitsRenewed: l.permitsRenewed,
		}}
		if !k.several { // else watch reports it
			options.OnLost, options.OnPermitsLost, options.Observe = l.lost, l.permitsLost, l.events.observe
		}
		if err := apply(s.Options, &options); err != nil {
			return nil, err
		}
		l.maxHold, l.reentrant, l.varied = options.maxHold, k.reentrant && !options.refuses, options.varied
		l.lease, l.poll = cmp.Or(options.Lease, defaultLease), options.PollMax
		var err error
		l.connect = func() (err error) {
			l.conns, err = connect(s, options.slotReload)
			return err
		}
		if err = l.connect(); err != nil {
			return nil, err
		}
		l.reopen = func() (*lock.Client, error) { return k.newClient(l.conns, options.Options) }
		if l.lock, err = l.reopen(); err != nil {
			return nil, errors.Join(err, closeAll(l.conns))
		}
		return l, nil
	}
}

// defaultLease is the default lease of package lock.
const defaultLease = 30 * time.Second

// lost reports the loss of h, of which the observer was to hear before. That of a multi-lock is reported for all of its
// keys, see watch.
func (l *library) lost(h *lock.Hold) {
	if _, seen := l.events.take(lock.Lost, h); seen && l.ended(h) {
		l.report(client.Hold{Key: h.Name(), Owner: ownerOf(h), Mode: l.holds.modeOf(h)}, h.Deadline())
	}
}

// renewed reports a renewal of h. A hold of several locks lasts until the first of them ends.
func (l *library) renewed(h *lock.Hold) {
	r := client.Reply{Event: history.Renewed, Key: keyOf(h.Name()), Owner: ownerOf(h), Deadline: h.Deadline()}
	if l.several {
		if r.Deadline = l.holds.until(r.Key, r.Owner); r.Deadline.IsZero() {
			return // the acquire has not returned
		}
	} else if _, seen := l.events.take(lock.Renewed, h); !seen {
		return // the observer was to hear of it before
	}
	l.notify(r)
}

// permitsRenewed reports a renewal of p. Permits of a multi-lock do not know their hold: it reports all holds that are
// valid for longer than before.
func (l *library) permitsRenewed(p *lock.Permits) {
	if l.several {
		for _, r := range l.holds.prolonged() {
			l.notify(r)
		}
	} else if _, seen := l.events.takeAbout(lock.Renewed, p); !seen {
		return // as for a hold
	} else if ref, known := l.permits.owner(p); known {
		l.notify(client.Reply{Event: history.Renewed, Key: ref.Key, Owner: ref.Owner, Deadline: p.Deadline()})
	}
}

// report reports the loss of a hold, and how many its owner still has.
func (l *library) report(h client.Hold, until time.Time) {
	left := l.holds.live(h.Key, h.Owner)
	for _, key := range native.KeysOf(h) {
		l.notify(client.Reply{Event: history.Lost, Key: key, Owner: h.Owner, Mode: h.Mode, Count: left, Deadline: until})
	}
}

// permitsLost reports the loss of p, for a client that learns of it from a callback.
func (l *library) permitsLost(p *lock.Permits) {
	_, seen := l.events.takeAbout(lock.Lost, p) // as for a hold
	if ref, known := l.permits.takeLost(p); known && seen && !l.contexts {
		l.report(ref, p.Deadline())
	}
}

// watch reports the loss of h, even if it is lost already, unless the options of package lock do.
func (l *library) watch(h held, ref client.Hold) {
	switch h := h.(type) {
	case *lock.Permits:
		lost := l.permits.add(h, ref)
		switch {
		case lost && !l.contexts:
			l.report(ref, h.Deadline())
		case !l.contexts:
			return // see permitsLost
		}
	case multiHold, *lock.MultiHold:
	default:
		return
	}
	go func() {
		<-h.Done()
		if errors.Is(h.Err(), lock.ErrLost) && l.ended(h) {
			l.report(ref, h.Deadline())
		}
	}()
}

// sharded reports whether the keys are in slots of a Redis Cluster.
func (l *library) sharded() bool {
	_, cluster := l.conns[0].(*redis.ClusterClient)
	return cluster
}

// Acquire acquires the lock.
func (l *library) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	asked, twice := time.Now(), l.isTwice(a)
	h, owner, err := l.acquireHeld(ctx, a, twice)
	apart := l.apart || l.several && l.sharded() // they are taken one after the other, perhaps in several rounds
	if err != nil && apart {
		return client.Grant{}, partsError{err}
	}
	if err != nil {
		return client.Grant{}, err
	}
	l.holds.add(native.IDOf(a.Hold()), h)
	l.watch(h, a.Hold())
	if err := cmp.Or(l.checkGrant(h, a, owner, asked), l.events.checkOutages()); err != nil {
		return client.Grant{}, err
	}
	g := grantOf(h)
	if twice && g.Count > 0 {
		g.Count = 1 // the other hold, of which it was the second perhaps, was released
	}
	g.Undone = apart
	return g, nil
}

// Renew renews the innermost hold, or asks to renew the last one, which has ended.
func (l *library) Renew(ctx context.Context, ref client.Hold, lease time.Duration) (client.Grant, error) {
	h, _ := l.holds.innermost(ref)
	if h == nil {
		return client.Grant{}, client.ErrNotHeld
	}
	if err := l.extend(ctx, h, lease); err != nil {
		return client.Grant{}, err
	}
	return grantOf(h), nil
}

// Release releases the innermost hold, or asks to release the last one again.
func (l *library) Release(ctx context.Context, ref client.Hold) (int, error) {
	h, id := l.holds.innermost(ref)
	if h == nil {
		return 0, client.ErrNotHeld
	}
	early := l.checkContext(h, ref.Owner)
	s, scoped := h.(*scope)
	release := func(ctx context.Context) error { return l.releaseHeld(ctx, h) }
	if scoped {
		release = func(context.Context) error { return l.leave(s, ref) }
	}
	err := release(ctx)
	if err == nil || lock.Definite(err) {
		l.holds.end(id, h)
	}
	if wrong := cmp.Or(early, l.checkReleased(h, err)); wrong != nil {
		return 0, wrong
	}
	count := grantOf(h).Count
	if err == nil && !l.ended(h) { // who works under its context works on
		count++
	}
	return count, err
}

// Close closes every connection; holds are left to their lease.
func (l *library) Close(ctx context.Context) error {
	close(l.closed)
	return errors.Join(l.lock.Close(ctx), closeAll(l.conns))
}
