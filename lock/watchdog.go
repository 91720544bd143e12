package lock

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// watchdog knows every hold of a client and renews the ones that were requested without a lease, each every third of
// its lease, many in one request.
//
// It never holds its mutex while it talks to a server or calls a hold. A hold is added before its owner knows of it and
// removed before its release is sent; a reply that comes later finds nothing here and is dropped.
type watchdog struct {
	client *Client
	early  chan struct{} // something is due before the loop wakes

	mu      sync.Mutex
	holds   map[*leaseKeeper]struct{}
	added   uint64    // how many holds there were
	next    time.Time // when the loop wakes
	closed  bool
	running bool
}

// renewalState is the watchdog's knowledge of a hold. Its mutex guards it.
type renewalState struct {
	seq      uint64    // holds are renewed in the order in which they were added
	due      time.Time // zero: it is not renewed
	last     time.Time // it is not renewed after that; zero: there is no limit
	inFlight bool      // a renewal was sent
	retry    bool      // the last one failed: the next must not be early
	fresh    bool      // the last one got no reply over an old connection: the next gets a new one
}

const (
	// renewBatch is how many holds one request renews, as in Redisson.
	renewBatch = 100
	// maxRenewals is how many requests renew the holds due at once for each kind of lock; if there are more holds, each
	// request renews more, because each has a goroutine.
	maxRenewals = 16
)

func newWatchdog(c *Client) *watchdog {
	return &watchdog{client: c, early: make(chan struct{}, 1), holds: make(map[*leaseKeeper]struct{})}
}

// add registers k, whose lease was asked for at sent. It reports false after close.
func (w *watchdog) add(k *leaseKeeper, sent time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.holds[k] = struct{}{}
	w.added++
	k.renewal.seq = w.added
	if !k.auto {
		return true
	}
	k.renewal.due = sent.Add(k.lease / 3)
	if !w.running {
		w.next = k.renewal.due // which is over where the grant took long
		first := time.Until(w.next)
		w.running = w.client.bg.Start(func() { w.loop(first) })
	} else if k.renewal.due.Before(w.next) {
		w.wake()
	}
	return true
}

func (w *watchdog) remove(k *leaseKeeper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.holds, k)
}

// close ends every hold.
func (w *watchdog) close() {
	w.mu.Lock()
	w.closed = true
	holds := slices.SortedFunc(maps.Keys(w.holds), bySeq)
	w.mu.Unlock()
	for _, k := range holds {
		k.end(ErrClosed)
	}
}

func bySeq(a, b *leaseKeeper) int { return cmp.Compare(a.renewal.seq, b.renewal.seq) }

func (w *watchdog) wake() {
	select {
	case w.early <- struct{}{}:
	default:
	}
}

// loop looks at the time first, and then every third of the client's lease, which is the lease of all holds that it
// renews: a hold that is acquired meanwhile is due later, so it need not wake the loop, and most holds have ended
// before it looks. It ends when nothing is held.
func (w *watchdog) loop(first time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-w.client.bg.Context.Done():
			return
		case <-w.early:
		case <-timer.C:
		}
		now := time.Now()
		due, next := w.collect(now)
		if next.IsZero() {
			return
		}
		due = slices.DeleteFunc(due, func(k *leaseKeeper) bool { return w.dismiss(k, now) })
		for _, same := range partition(due, w.destination) {
			for batch := range slices.Chunk(same, max(renewBatch, (len(same)+maxRenewals-1)/maxRenewals)) {
				w.send(batch)
			}
		}
		timer.Reset(next.Sub(now))
	}
}

// destination is where a hold is renewed: holds with the same one may be renewed in one request.
type destination struct {
	store  store
	master string // of a cluster
	fresh  bool   // over a new connection
}

func (w *watchdog) destination(k *leaseKeeper) destination {
	d := destination{store: k.claim.store, fresh: k.renewal.fresh}
	if w.client.node != nil {
		d.master = w.client.node.Master(k.claim.key)
	}
	return d
}

// collect takes out the holds due now, or soon enough to join them, and returns when to look again; zero: nothing is
// held.
func (w *watchdog) collect(now time.Time) (due []*leaseKeeper, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.holds) == 0 && !now.Before(w.next) {
		w.running = false
		return nil, time.Time{}
	}
	next = now.Add(w.client.o.Lease / 3)
	for k := range w.holds {
		r := &k.renewal
		switch {
		case r.due.IsZero() || r.inFlight:
		// A retry is not early: where no server listens, every request fails at once,
		// and without the wait the next would follow without end.
		case r.due.Sub(now) <= k.lease/30 && !r.retry || !now.Before(r.due):
			r.inFlight = true
			due = append(due, k)
		case r.due.Before(next):
			next = r.due
		}
	}
	w.next = next
	slices.SortFunc(due, bySeq)
	return due, next
}

// dismiss reports whether k has been renewed for as long as it may be; then it ends with its lease.
func (w *watchdog) dismiss(k *leaseKeeper, now time.Time) bool {
	w.mu.Lock()
	over := !k.renewal.last.IsZero() && !now.Before(k.renewal.last)
	if over {
		k.renewal = renewalState{seq: k.renewal.seq}
	}
	w.mu.Unlock()
	if over {
		k.arm()
	}
	return over
}

// send renews holds of one kind in one request, beside all others that are in
// flight: a server that hangs must not keep the rest from being renewed.
func (w *watchdog) send(holds []*leaseKeeper) {
	w.client.bg.Start(func() {
		limit := holds[0].lease
		claims := make([]claim, len(holds))
		for i, k := range holds {
			k.arm()
			claims[i] = k.claim
			claims[i].fresh = k.renewal.fresh // which does not change while a renewal is in flight
			limit = min(limit, k.lease)
		}
		ctx, cancel := context.WithTimeout(w.client.bg.Context, limit/3)
		defer cancel()
		for i, r := range claims[0].store.renew(ctx, claims) {
			w.settle(holds[i], r)
		}
		w.wake()
	})
}

// settle applies the reply for k: the next renewal is in a third of the lease, or soon if there was no reply.
func (w *watchdog) settle(k *leaseKeeper, r renewal) {
	due := r.sent.Add(k.lease / 3)
	if r.err != nil {
		due = time.Now().Add(min(w.client.backoff(), k.lease/10))
	}
	w.mu.Lock()
	_, held := w.holds[k]
	if held {
		k.renewal.due, k.renewal.inFlight, k.renewal.retry = due, false, r.err != nil
		reply := redis.Error(nil)
		k.renewal.fresh = r.err != nil && !errors.As(r.err, &reply) && !k.renewal.fresh // perhaps only old ones work
	}
	w.mu.Unlock()
	if !held || r.err != nil {
		return // released or lost meanwhile, or to be retried
	}
	if k.settle(r, k.lease) == nil {
		k.holder.onRenewed()
	}
}
