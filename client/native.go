package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Ask is what a lock is asked for.
type Ask struct {
	Key     string
	Owner   string        // of the hold; re-entry repeats it
	Lease   time.Duration // 0: the lock renews by itself
	Wait    bool          // false: only if it is free now
	Mode    string        // "read" or "write"; empty: exclusive
	Permits int           // at least 1
	Limit   int           // permits that there are in all; at least 1
}

// Grant is what a lock gave.
type Grant struct {
	Token    uint64    // fencing number; 0: this lock mints none
	Deadline time.Time // end of the promised validity; zero: none was promised
	Count    int       // hold count of this owner; 0: this lock does not count
}

// Locker is a lock library behind the harness's words: one file in this
// package for each. Its methods may be called from several goroutines.
type Locker interface {
	Acquire(ctx context.Context, a Ask) (Grant, error)
	Renew(ctx context.Context, key, owner string) (Grant, error)
	Release(ctx context.Context, key, owner string) (count int, err error)
	Close(ctx context.Context) error
}

// ErrNotHeld is what a Locker answers when asked to renew or release a hold
// that it does not have.
var ErrNotHeld = errors.New("this client has no such hold")

// Native is a client whose lock is a [Locker] in this process. It is the
// client's end of the protocol: Handle answers one request at a time.
type Native struct {
	notify func(Reply)
	mono   func() int64
	lookup lookup

	mu     sync.Mutex
	row    Spec
	locker Locker
}

// NewNative is a client that tells notify of lost and renewed holds. notify is
// called from several goroutines and must not block for long. mono is the clock
// that stamps promises: [Mono] in a process of its own, the harness's otherwise.
func NewNative(notify func(Reply), mono func() int64) *Native {
	n := &Native{mono: mono, lookup: Lookup}
	n.notify = func(r Reply) {
		if !r.until.IsZero() {
			r.promise(r.until, mono())
		}
		notify(r)
	}
	return n
}

// Handle does what r asks and says how it went. It never panics: a lock that
// does is a finding, and what it had done by then is unknown.
func (n *Native) Handle(ctx context.Context, r Request) (reply Reply) {
	defer func() {
		if p := recover(); p != nil {
			reply = Reply{ID: r.ID, Type: "info", Code: "panic", Error: fmt.Sprintf("the lock panicked: %v", p)}
		}
	}()
	n.mu.Lock()
	locker := n.locker
	n.mu.Unlock()
	switch {
	case r.Op == Init && locker != nil:
		return refuse(r, "bad-request", "init was asked before; close comes first")
	case r.Op == Init:
		return n.open(r)
	case r.Op == Close:
		reply := n.close(ctx, locker)
		reply.ID = r.ID
		return reply
	case locker == nil:
		return refuse(r, "not-ready", "init comes before everything else")
	}
	switch r.Op {
	case opAcquire, opTry:
		return n.acquire(ctx, locker, r)
	case opRenew:
		g, err := locker.Renew(ctx, r.Key, r.Owner)
		return n.reply(r, g, err)
	case opRelease:
		count, err := locker.Release(ctx, r.Key, r.Owner)
		return n.reply(r, Grant{Count: count}, err)
	case opWork:
		return work(ctx, r)
	}
	return refuse(r, "unknown-op", fmt.Sprintf("no such operation: %q", r.Op))
}

func (n *Native) open(r Request) Reply {
	if r.Setup == nil {
		return refuse(r, "bad-request", "init has no setup")
	}
	row, err := n.lookup(r.Setup.Lock)
	if err == nil && row.Open == nil {
		err = fmt.Errorf("%q is not a native lock", row.Name)
	}
	if err != nil {
		return refuse(r, "unknown-lock", err.Error())
	}
	locker, err := row.Open(*r.Setup, n.notify)
	if err != nil {
		return refuse(r, "bad-setup", err.Error())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.row, n.locker = row, locker
	return Reply{ID: r.ID, Type: "ok"}
}

func (n *Native) close(ctx context.Context, locker Locker) Reply {
	if locker == nil {
		return Reply{Type: "ok"}
	}
	n.mu.Lock()
	n.locker = nil
	n.mu.Unlock()
	if err := locker.Close(ctx); err != nil {
		return Reply{Type: "info", Code: "close", Error: err.Error()}
	}
	return Reply{Type: "ok"}
}

func (n *Native) acquire(ctx context.Context, locker Locker, r Request) Reply {
	ask := Ask{
		Key: r.Key, Owner: r.Owner, Lease: millis(r.LeaseMS), Mode: r.Mode,
		Permits: max(1, r.Permits), Limit: max(1, r.Limit), Wait: r.Op == opAcquire && r.WaitMS > 0,
	}
	if ask.Wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, millis(r.WaitMS))
		defer cancel()
	}
	g, err := locker.Acquire(ctx, ask)
	return n.reply(r, g, err)
}

// answer is the one place where a native lock's error becomes fail or info:
// what is not certainly undone is info.
func (n *Native) reply(r Request, g Grant, err error) Reply {
	if err == nil {
		reply := Reply{ID: r.ID, Type: "ok", Token: g.Token, Count: g.Count}
		reply.promise(g.Deadline, n.mono())
		return reply
	}
	kind := "info"
	if n.row.Definite(err) || errors.Is(err, ErrNotHeld) {
		kind = "fail"
	}
	return Reply{ID: r.ID, Type: kind, Code: n.row.Code(err), Error: err.Error()}
}

// promise sets how long the hold is still promised, and when that was said.
func (r *Reply) promise(deadline time.Time, mono int64) {
	if deadline.IsZero() {
		return
	}
	r.MonoNS = mono
	r.ValidMS = float64(time.Until(deadline)) / float64(time.Millisecond)
}

// work is the critical section: it is spent here, so that a client that is
// stopped is late.
func work(ctx context.Context, r Request) Reply {
	t := time.NewTimer(millis(r.MS))
	defer t.Stop()
	select {
	case <-t.C:
		return Reply{ID: r.ID, Type: "ok"}
	case <-ctx.Done():
		return Reply{ID: r.ID, Type: "info", Code: "closing", Error: "the client was closed during its work"}
	}
}

func refuse(r Request, code, text string) Reply {
	return Reply{ID: r.ID, Type: "fail", Code: code, Error: text}
}

// century bounds every duration on the wire: clients may say anything, and a
// sum of two of them must not overflow.
const century = 100 * 365 * 24 * time.Hour

// millis is ms milliseconds, within a century to either side of zero.
func millis(ms float64) time.Duration {
	most := float64(century / time.Millisecond)
	return time.Duration(max(-most, min(most, ms)) * float64(time.Millisecond))
}
