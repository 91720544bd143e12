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
	Permits  int       // of a try with [Request.Drain]: how many were granted
	Owner    string    // of an inspection: who holds the lock
}

// Locker is a lock library under test; each method is one attempt. Its methods may be called concurrently. An error
// that is [ErrNotHeld], or that [Spec.Definite] accepts, means that the operation had no effect and never will; the
// effect of every other error is unknown.
type Locker interface {
	// Acquire gets Permits and Limit of at least 1, and a ctx that ends after Wait, if that is not 0.
	Acquire(ctx context.Context, a Acquire) (Grant, error)
	// Renew extends the lease of h to lease; 0: to its former lease.
	Renew(ctx context.Context, h Hold, lease time.Duration) (Grant, error)
	Release(ctx context.Context, h Hold) (count int, err error) // count: holds that the owner still has
	Close(ctx context.Context) error                            // closes connections, releases nothing
}

// Operator is implemented by a [Locker] whose [Spec] states a promise that has operations or fields of its own, see
// [promise.Catalog].
type Operator interface {
	// Operate executes a request whose operation or field needs a promise that the Spec states. Other requests get the
	// methods of Locker. Permits and Limit of an acquire or a try are at least 1, and ctx ends after Wait, if that is not
	// 0. docs/reference/protocol.md describes each operation; for a lock in Go this means:
	//
	//   - arm, count-down: the grant has the generation as its token, and the count
	//   - await: the error says that the latch did not open in time
	//   - try with Drain: the grant has the number of permits
	//   - acquire with Close: if it takes longer, the lock object is closed, which has to end the acquire at once, and
	//     opened again; if the lock was granted meanwhile, the hold has ended, and the outcome is unknown
	//   - force-release: [ErrNotHeld] if nobody holds the lock
	//   - guard: [ErrStale] if a greater token was presented before
	//   - inspect: the grant has the owner, the token, the hold count, and until when the servers keep it, as far as they
	//     are known; [ErrNotHeld] if the lock is free, [ErrHeld] if its owner is not known; of a latch: generation and
	//     count
	//   - inspect-owner: how often the owner, one of this client, holds the lock in all modes, or how many permits it has;
	//     [ErrNotHeld] if none
	//   - count-waiters, add-permits, drop-permits: the count
	//   - reopen: all holds of the client end, which the lock reports as losses; it is not called for a lock that several
	//     clients share, nor during another call
	Operate(ctx context.Context, r Request) (Grant, error)
}

// ErrStale is the error of operation guard for a token that is refused.
var ErrStale = errors.New("the token is older than one that was presented")

// ErrHeld is the error of operation inspect if it is not known who holds the lock.
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
	if r.Op == history.Work {
		return work(ctx, r)
	}
	if needs := neededFor(r); needs != 0 {
		return n.operate(ctx, r, needs)
	}
	if n.row.Can.Has(promise.Latch) {
		return notOffered(r)
	}
	switch r.Op {
	case history.Acquire, history.Try:
		return n.acquire(ctx, r)
	case history.Renew:
		g, err := n.locker.Renew(ctx, r.attempt(r.Op).Hold(), r.Lease)
		return n.reply(r, g, err)
	case history.Release:
		if r.Canceled {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			ctx = ended
		}
		h := r.attempt(r.Op).Hold()
		h.Failed = r.Failed
		count, err := n.locker.Release(ctx, h)
		return n.reply(r, Grant{Count: count}, err)
	}
	return notOffered(r)
}

// neededFor is the promise without which a lock does not get r. A [Locker] has its own methods for try and renew.
func neededFor(r Request) promise.Set {
	switch {
	case r.Op == history.Acquire && r.Close > 0:
		return promise.CloseEndsWaits
	case r.Op == history.Try && r.Drain:
		return promise.ManagesPermits
	case r.Op == history.ForceRelease && r.Permits > 0:
		return promise.ForceReleasePermits
	}
	return promise.NeededFor(r.Op).Without(promise.Try | promise.Renew)
}

// operate executes a request that needs a promise.
func (n *native) operate(ctx context.Context, r Request, needs promise.Set) Reply {
	locker, shared := n.locker, false
	if m, is := locker.(*member); is {
		locker, shared = m.Locker, true
		if r.Drain {
			m.note(r.Owner)
		}
	}
	o, ok := locker.(Operator)
	if !ok || !n.row.Can.Has(needs) || shared && r.Op == history.Reopen ||
		n.row.Can.Has(promise.Latch) && !(promise.Latch|promise.Inspect).Has(needs) {
		return notOffered(r)
	}
	if r.Op == history.Acquire || r.Op == history.Try {
		if reply, wrong := badMode(r); wrong {
			return reply
		}
		r.Acquire = r.attempt(r.Op)
	}
	if r.Op == history.Await {
		r.Wait = max(time.Millisecond, r.Wait)
	}
	if r.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Wait)
		defer cancel()
	}
	g, err := o.Operate(ctx, r)
	reply := n.reply(r, g, err)
	reply.Owner, reply.Permits = g.Owner, g.Permits
	return reply
}

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
	if reply, wrong := badMode(r); wrong {
		return reply
	}
	a := r.attempt(r.Op)
	if a.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Wait)
		defer cancel()
	}
	g, err := n.locker.Acquire(ctx, a)
	return n.reply(r, g, err)
}

// badMode is the reply to a request with an unknown mode.
func badMode(r Request) (reply Reply, wrong bool) {
	if slices.Contains([]string{"", "read", "write"}, r.Mode) {
		return Reply{}, false
	}
	return fail(r, "bad-request", fmt.Sprintf("unknown mode %q", r.Mode)), true
}

// attempt returns a with the defaults of fields that were left out. A try does not wait.
func (a Acquire) attempt(op string) Acquire {
	a.Permits, a.Limit = max(1, a.Permits), max(1, a.Limit)
	if a.Wait = max(0, a.Wait); op == history.Try {
		a.Wait = 0
	}
	return a
}

// reply is the only place where an error of a native lock becomes fail or info:
// it is fail only if the operation certainly had no effect.
func (n *native) reply(r Request, g Grant, err error) Reply {
	if err == nil {
		reply := Reply{ID: r.ID, Type: "ok", Token: g.Token, Count: g.Count, Undone: g.Undone}
		reply.setValidity(g.Deadline, n.mono())
		return reply
	}
	if r.Op == history.Guard && errors.Is(err, ErrStale) {
		return fail(r, history.CodeStale, err.Error())
	}
	if r.Op == history.Inspect && errors.Is(err, ErrHeld) {
		return fail(r, history.CodeHeld, err.Error())
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
