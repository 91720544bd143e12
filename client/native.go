package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Grant is the result of an acquire or a renewal.
type Grant struct {
	Token    uint64    // fencing token; 0: none
	Deadline time.Time // end of the validity; zero: none was promised
	Count    int       // hold count of the owner; 0: this lock does not count
}

// Locker is a lock library under test; each method is one attempt. Its methods may be called concurrently. An error
// that is [ErrNotHeld], or one that [Spec.Definite] accepts, means that the operation had no effect and never will;
// the effect of every other error is unknown.
type Locker interface {
	// Acquire gets Permits and Limit of at least 1, and a ctx that ends after Wait, if that is not 0.
	Acquire(ctx context.Context, a Acquire) (Grant, error)
	Renew(ctx context.Context, key, owner string) (Grant, error)
	Release(ctx context.Context, key, owner string) (count int, err error) // count: holds that the owner still has
	Close(ctx context.Context) error                                       // closes connections, releases nothing
}

// ErrNotHeld is the error of a [Locker] that should renew or release a hold that it does not have.
var ErrNotHeld = errors.New("not held by this client")

// native executes requests on a [Locker] in this process, one at a time.
type native struct {
	notify func(Reply)
	mono   func() int64
	lookup lookup
	row    Spec
	locker Locker // nil before init and after close
}

// newNative returns a client that calls notify for lost and renewed holds. notify is called from several goroutines and
// must not block for long. mono is the clock of Reply.MonoNS: [MonotonicNow] in a process of its own, otherwise the
// harness's.
func newNative(notify func(Reply), mono func() int64) *native {
	n := &native{mono: mono, lookup: Lookup}
	n.notify = func(r Reply) {
		if !r.until.IsZero() {
			r.setValidity(r.until, mono())
		}
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
	switch r.Op {
	case history.Acquire, history.Try:
		return n.acquire(ctx, r)
	case history.Renew:
		g, err := n.locker.Renew(ctx, r.Key, r.Owner)
		return n.reply(r, g, err)
	case history.Release:
		count, err := n.locker.Release(ctx, r.Key, r.Owner)
		return n.reply(r, Grant{Count: count}, err)
	case history.Work:
		return work(ctx, r)
	}
	return fail(r, "unknown-op", fmt.Sprintf("unknown op %q", r.Op))
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
	return Reply{ID: r.ID, Type: "ok"}
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
	a := r.Acquire
	a.Permits, a.Limit = max(1, a.Permits), max(1, a.Limit)
	if a.Wait = max(0, a.Wait); r.Op == history.Try {
		a.Wait = 0
	}
	if a.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Wait)
		defer cancel()
	}
	g, err := n.locker.Acquire(ctx, a)
	return n.reply(r, g, err)
}

// reply is the only place where an error of a native lock becomes fail or info:
// what is not certain to have had no effect is info.
func (n *native) reply(r Request, g Grant, err error) Reply {
	if err == nil {
		reply := Reply{ID: r.ID, Type: "ok", Token: g.Token, Count: g.Count}
		reply.setValidity(g.Deadline, n.mono())
		return reply
	}
	kind := "info"
	if n.row.Definite(err) || errors.Is(err, ErrNotHeld) {
		kind = "fail"
	}
	return Reply{ID: r.ID, Type: kind, Code: n.row.Code(err), Error: err.Error()}
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
