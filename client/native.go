package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// Grant is the result of an acquire or a renewal, and the state of a latch.
type Grant struct {
	Token    uint64    // fencing token; of a latch: its generation; 0: none
	Deadline time.Time // end of the validity; zero: none was promised
	Undone   bool      // of an acquire: the lock may have been granted before, and the grant undone
	Count    int       // hold count of the owner; 0: this lock does not count; of a latch: 0: it is open
}

// Locker is a lock library under test; each method is one attempt. Its methods may be called concurrently. An error
// that is [ErrNotHeld], or one that [Spec.Definite] accepts, means that the operation had no effect and never will;
// the effect of every other error is unknown.
type Locker interface {
	// Acquire gets Permits and Limit of at least 1, and a ctx that ends after Wait, if that is not 0.
	Acquire(ctx context.Context, a Acquire) (Grant, error)
	// Renew extends the lease of h to lease; 0: to its former lease.
	Renew(ctx context.Context, h Hold, lease time.Duration) (Grant, error)
	Release(ctx context.Context, h Hold) (count int, err error) // count: holds that the owner still has
	Close(ctx context.Context) error                            // closes connections, releases nothing
}

// Latch is implemented by a [Locker] whose [Spec] has the promise [promise.Latch]. Its Acquire is not called.
type Latch interface {
	// Arm sets the count of a latch that is open or does not exist.
	Arm(ctx context.Context, key string, count int) (Grant, error)
	// CountDown counts the latch down for a participant, once in each generation; generation 0 is the current one.
	// Participant "" is a new one each time.
	CountDown(ctx context.Context, key, participant string, generation uint64) (Grant, error)
	// Await waits until the latch is open, or ctx ends.
	Await(ctx context.Context, key string, generation uint64) error
}

// LatchDeleter is implemented by a [Latch] whose [Spec] has the promise [promise.Latch].
type LatchDeleter interface {
	// Delete removes the latch, if it exists. Its waiters are refused.
	Delete(ctx context.Context, key string) error
}

// LatchInspector is implemented by a [Latch] whose [Spec] has the promise [promise.Inspect].
type LatchInspector interface {
	// State reports the generation and the count of the latch. Its error says so if the latch does not exist.
	State(ctx context.Context, key string) (Grant, error)
}

// Resizer is implemented by a [Locker] whose [Spec] has the promise [promise.ManagesPermits].
type Resizer interface {
	// Resize sets the number of permits of a semaphore. Permits that are held stay held.
	Resize(ctx context.Context, key string, permits int) error
}

// Forcer is implemented by a [Locker] whose [Spec] has the promise [promise.ForceRelease].
type Forcer interface {
	// ForceRelease releases the lock for every owner that holds it, and reports whether it was held.
	ForceRelease(ctx context.Context, key string) (held bool, err error)
}

// Inspector is implemented by a [Locker] whose [Spec] has the promise [promise.Inspect].
type Inspector interface {
	// Inspect reports who holds the lock, and the grant: its token, its hold count, and until when the servers keep it;
	// what is not known is 0. Its error is [ErrNotHeld] if the lock is free, and [ErrHeld] if it is held and by whom is
	// not known.
	Inspect(ctx context.Context, key string) (owner string, g Grant, err error)
}

// OwnerInspector is implemented by a [Locker] whose [Spec] has the promise [promise.InspectOwner].
type OwnerInspector interface {
	// InspectOwner reports how often the owner of h, one of this client, holds the lock in all modes or, of a semaphore,
	// how many permits. Its error is [ErrNotHeld] if that is none.
	InspectOwner(ctx context.Context, h Hold) (count int, err error)
}

// WaiterCounter is implemented by a [Locker] whose [Spec] has the promise [promise.CountWaiters].
type WaiterCounter interface {
	// CountWaiters reports how many acquires wait in the queue of the lock at the servers.
	CountWaiters(ctx context.Context, key string) (waiters int, err error)
}

// Guard is implemented by a [Locker] whose [Spec] has the promise [promise.Guard].
type Guard interface {
	// Guard presents the token of a hold to a resource that the lock guards, one for each key. Its error is [ErrStale] if
	// a greater token was presented before.
	Guard(ctx context.Context, key string, token uint64) error
}

// Reopener is implemented by a [Locker] whose [Spec] has the promise [promise.Reopen].
type Reopener interface {
	// Reopen closes the lock and opens it again, as a program does whose configuration has changed. All holds of the
	// client end with it, which the lock reports as losses; what servers keep of them is left to its lease. It is not
	// called for a lock that several clients share, nor during another call.
	Reopen(ctx context.Context) error
}

// WaitEnder is implemented by a [Locker] whose [Spec] has the promise [promise.CloseEndsWaits].
type WaitEnder interface {
	// AcquireUntilClosed acquires the lock. If that takes longer than after, it closes the lock object, which has to end
	// the acquire at once, and opens another one, as [Reopener] does. If the lock was granted meanwhile, the hold has
	// ended, and the outcome is unknown, because servers keep the lock until its lease expires.
	AcquireUntilClosed(ctx context.Context, a Acquire, after time.Duration) (Grant, error)
}

// ErrStale is the error of a [Guard] that refuses a token.
var ErrStale = errors.New("the token is older than one that was presented")

// ErrHeld is the error of an [Inspector] that does not know who holds the lock.
var ErrHeld = errors.New("held by an owner whose name is not known")

// ErrNotHeld is the error of a [Locker] that is to renew or release a hold that it does not have.
var ErrNotHeld = errors.New("not held by this client")

// ErrContradiction is the error of a [Locker] that contradicts itself: two of its answers about one hold or operation
// disagree, or one disagrees with its documentation. Its code is history.CodeContradiction, and honesty reports it as a
// violation.
var ErrContradiction = errors.New("the lock contradicts itself")

// native executes requests on a [Locker] in this process, one at a time.
type native struct {
	notify func(Reply)
	mono   func() int64
	lookup Lookup
	row    Spec
	locker Locker // nil before init and after close
}

// newNative returns a client that calls notify for lost and renewed holds. notify is called from several goroutines and
// must not block for long. mono is the clock of Reply.MonoNS: [MonotonicNow] in a process of its own, otherwise the
// harness's. find finds the lock that init names.
func newNative(notify func(Reply), mono func() int64, find Lookup) *native {
	n := &native{mono: mono, lookup: find}
	n.notify = func(r Reply) {
		if r.MonoNS == 0 {
			r.MonoNS = mono()
		}
		r.setValidity(r.Deadline, r.MonoNS)
		notify(r)
	}
	return n
}

// handle executes r. A panic of the lock becomes an info reply: its effect is unknown.
func (n *native) handle(ctx context.Context, r Request) (reply Reply) {
	defer func() {
		if p := recover(); p != nil {
			reply = Reply{ID: r.ID, Type: "info", Code: "panic", Error: fmt.Sprintf("lock panicked: %v", p)}
		}
	}()
	switch {
	case r.Op == Init && n.locker != nil:
		return fail(r, "bad-request", "second init without a close")
	case r.Op == Init:
		return n.open(r)
	case r.Op == Close:
		return n.close(ctx, r)
	case n.locker == nil:
		return fail(r, "not-ready", fmt.Sprintf("op %q before init", r.Op))
	}
	switch needs := promise.NeededFor(r.Op); {
	case r.Op == history.Work:
		return work(ctx, r)
	case needs&^(promise.Try|promise.Renew) != 0 && !n.row.Can.Has(needs):
		return notOffered(r)
	}
	if n.row.Can.Has(promise.Latch) {
		return n.latch(ctx, r)
	}
	switch r.Op {
	case history.Acquire, history.Try:
		return n.acquire(ctx, r)
	case history.Renew:
		g, err := n.locker.Renew(ctx, r.Hold(), r.Lease)
		return n.reply(r, g, err)
	case history.Release:
		if r.Canceled {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			ctx = ended
		}
		h := r.Hold()
		h.Failed = r.Failed
		count, err := n.locker.Release(ctx, h)
		return n.reply(r, Grant{Count: count}, err)
	}
	return n.administer(ctx, r)
}

// latch executes an operation on a latch.
func (n *native) latch(ctx context.Context, r Request) Reply {
	l, ok := offers[Latch](n.locker)
	if !ok {
		return notOffered(r)
	}
	switch r.Op {
	case history.Arm:
		g, err := l.Arm(ctx, r.Key, r.Count)
		return n.reply(r, g, err)
	case history.CountDown:
		g, err := l.CountDown(ctx, r.Key, r.Owner, r.Token)
		return n.reply(r, g, err)
	case history.Await:
		ctx, cancel := context.WithTimeout(ctx, max(time.Millisecond, r.Wait))
		defer cancel()
		return n.reply(r, Grant{Token: r.Token}, l.Await(ctx, r.Key, r.Token))
	case history.Delete:
		return with(n, r, func(l LatchDeleter) (Grant, error) { return Grant{}, l.Delete(ctx, r.Key) })
	case history.Inspect:
		return with(n, r, func(l LatchInspector) (Grant, error) { return l.State(ctx, r.Key) })
	}
	return notOffered(r)
}

// administer executes an operation on a lock that is not on a hold.
func (n *native) administer(ctx context.Context, r Request) Reply {
	switch r.Op {
	case history.Resize:
		return with(n, r, func(l Resizer) (Grant, error) { return Grant{}, l.Resize(ctx, r.Key, r.Limit) })
	case history.ForceRelease:
		return n.force(ctx, r)
	case history.AddPermits, history.DropPermits:
		return n.changePermits(ctx, r)
	case history.Guard:
		return with(n, r, func(l Guard) (Grant, error) { return Grant{}, l.Guard(ctx, r.Key, r.Token) })
	case history.Inspect:
		if l, ok := offers[Inspector](n.locker); ok {
			owner, g, err := l.Inspect(ctx, r.Key)
			reply := n.reply(r, g, err)
			if errors.Is(err, ErrHeld) {
				reply.Type, reply.Code = "fail", history.CodeHeld
			}
			reply.Owner = owner
			return reply
		}
	case history.InspectOwner:
		return with(n, r, func(l OwnerInspector) (Grant, error) {
			return counted(l.InspectOwner(ctx, r.Hold()))
		})
	case history.Reopen:
		if l, ok := n.locker.(Reopener); ok {
			return n.reply(r, Grant{}, l.Reopen(ctx))
		}
	case history.CountWaiters:
		return with(n, r, func(l WaiterCounter) (Grant, error) {
			return counted(l.CountWaiters(ctx, r.Key))
		})
	}
	return notOffered(r)
}

// with executes r on the lock as a T, if it is one.
func with[T any](n *native, r Request, do func(T) (Grant, error)) Reply {
	l, ok := offers[T](n.locker)
	if !ok {
		return notOffered(r)
	}
	g, err := do(l)
	return n.reply(r, g, err)
}

// counted is a grant that only counts.
func counted(count int, err error) (Grant, error) { return Grant{Count: count}, err }

func notOffered(r Request) Reply {
	return fail(r, "unknown-op", fmt.Sprintf("this lock has no op %q", r.Op))
}

func (n *native) open(r Request) Reply {
	if r.Setup == nil {
		return fail(r, "bad-request", "init without setup")
	}
	row, err := n.lookup(r.Setup.Lock)
	if err == nil && row.Open == nil {
		err = fmt.Errorf("lock %q is a program, not a native lock", row.Name)
	}
	if err != nil {
		return fail(r, "unknown-lock", err.Error())
	}
	locker, err := row.Open(*r.Setup, n.notify)
	if err != nil {
		return fail(r, "bad-setup", err.Error())
	}
	n.row, n.locker = row, locker
	return Reply{ID: r.ID, Type: "ok", Can: row.stated(r.Setup.Options)}
}

func (n *native) close(ctx context.Context, r Request) Reply {
	locker := n.locker
	n.locker = nil
	if locker != nil {
		if err := locker.Close(ctx); err != nil {
			return Reply{ID: r.ID, Type: "info", Code: "close", Error: err.Error()}
		}
	}
	return Reply{ID: r.ID, Type: "ok"}
}

func (n *native) acquire(ctx context.Context, r Request) Reply {
	if !slices.Contains([]string{"", "read", "write"}, r.Mode) {
		return fail(r, "bad-request", fmt.Sprintf("unknown mode %q", r.Mode))
	}
	a := r.Acquire
	a.Permits, a.Limit = max(1, a.Permits), max(1, a.Limit)
	if a.Wait = max(0, a.Wait); r.Op == history.Try {
		a.Wait = 0
	}
	if r.Drain {
		return n.drain(ctx, r, a)
	}
	if a.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Wait)
		defer cancel()
	}
	if r.Close > 0 && !n.row.Can.Has(promise.CloseEndsWaits) {
		return notOffered(r)
	}
	if r.Close > 0 {
		return with(n, r, func(l WaitEnder) (Grant, error) { return l.AcquireUntilClosed(ctx, a, r.Close) })
	}
	g, err := n.locker.Acquire(ctx, a)
	return n.reply(r, g, err)
}

// reply is the only place where an error of a native lock becomes fail or info:
// what is not certain to have had no effect is info.
func (n *native) reply(r Request, g Grant, err error) Reply {
	if err == nil {
		reply := Reply{ID: r.ID, Type: "ok", Token: g.Token, Count: g.Count, Undone: g.Undone}
		reply.setValidity(g.Deadline, n.mono())
		return reply
	}
	if r.Op == history.Guard && errors.Is(err, ErrStale) {
		return fail(r, history.CodeStale, err.Error())
	}
	if errors.Is(err, ErrContradiction) {
		return Reply{ID: r.ID, Type: "info", Code: history.CodeContradiction, Error: err.Error()}
	}
	kind := "info"
	if n.row.Definite(err) || errors.Is(err, ErrNotHeld) {
		kind = "fail"
	}
	undone := kind == "fail" && n.row.Undone != nil && n.row.Undone(err)
	return Reply{ID: r.ID, Type: kind, Code: n.row.Code(err), Error: err.Error(), Undone: undone}
}

func (r *Reply) setValidity(deadline time.Time, mono int64) {
	if deadline.IsZero() {
		return
	}
	r.MonoNS = mono
	r.ValidMS = float64(time.Until(deadline)) / float64(time.Millisecond)
}

// work is the critical section. It runs in the client's process, so that a stopped client is late.
func work(ctx context.Context, r Request) Reply {
	t := time.NewTimer(r.Work)
	defer t.Stop()
	select {
	case <-t.C:
		return Reply{ID: r.ID, Type: "ok"}
	case <-ctx.Done():
		return Reply{ID: r.ID, Type: "info", Code: "closing", Error: "client closed during work"}
	}
}

func fail(r Request, code, text string) Reply {
	return Reply{ID: r.ID, Type: "fail", Code: code, Error: text}
}
