package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
)

func contradiction(text string, args ...any) error {
	return fmt.Errorf("%w: %s", client.ErrContradiction, fmt.Sprintf(text, args...))
}

// eventID is the subject of an event of package lock.
type eventID struct {
	kind        lock.EventKind
	name, owner string
}

// events are the reports of package lock to its observer, until a call or a callback is compared with it.
type events struct {
	mu      sync.Mutex
	list    map[eventID][]lock.Event
	outage  time.Time // when the last one was reported; zero: none was by this client of package lock
	tooSoon error     // an outage was reported sooner after another one than documented
}

// outageEvery is the least time between two reports of an outage, as package lock documents it.
const outageEvery = 10 * time.Second

// observe is the observer. Failed acquires are not compared, because the name of their owner may not be known.
func (e *events) observe(v lock.Event) {
	if v.Primitive == "latch" || v.Kind == lock.NotAcquired {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if v.Kind == lock.Unreachable {
		e.reportOutage(time.Now())
		return
	}
	if e.list == nil {
		e.list = make(map[eventID][]lock.Event)
	}
	id := eventID{v.Kind, v.Name, v.Owner}
	e.list[id] = append(e.list[id], v)
}

// reportOutage compares an outage that is reported now with the last one. The caller holds the mutex.
func (e *events) reportOutage(now time.Time) {
	if after := now.Sub(e.outage); !e.outage.IsZero() && after < outageEvery-clockStep {
		e.tooSoon = contradiction("an outage was reported again after %v", after)
	}
	e.outage = now
}

// forgetOutage is called when another client of package lock takes over, which has not reported any.
func (e *events) forgetOutage() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outage = time.Time{}
}

// checkOutages returns the error in the reported outages, if any.
func (e *events) checkOutages() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tooSoon
}

// take returns the oldest event about h, and whether there was one.
func (e *events) take(kind lock.EventKind, h *lock.Hold) (v lock.Event, seen bool) {
	return e.takeOf(eventID{kind, h.Name(), h.Owner()})
}

// takeAbout is take for permits, which have no owner: their events have the first of their ids instead.
func (e *events) takeAbout(kind lock.EventKind, p *lock.Permits) (v lock.Event, seen bool) {
	return e.takeOf(eventID{kind, p.Name(), p.IDs()[0]})
}

func (e *events) takeOf(id eventID) (v lock.Event, seen bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list[id]
	if len(list) == 0 {
		return v, false
	}
	if e.list[id] = list[1:]; len(list) == 1 {
		delete(e.list, id)
	}
	return list[0], true
}

// holdOf is h if it is the hold of one lock.
func holdOf(h held) (one *lock.Hold, ok bool) {
	switch h := h.(type) {
	case *lock.Hold:
		return h, true
	case *lock.FencedHold:
		return &h.Hold, true
	case *lockerHold:
		return h.Hold, true
	}
	return nil, false
}

// leastValidity is for how long a hold is promised at least, from the request on: the allowance for the drift of clocks
// is up to the lock.
func leastValidity(lease time.Duration) time.Duration { return lease*9/10 - 10*time.Millisecond }

// clockStep is by how much two readings of a clock may disagree here.
const clockStep = time.Millisecond

// checkPromise compares the deadline of a hold, if it has one, with the lease that was requested after an instant.
func (l *library) checkPromise(h held, lease time.Duration, asked time.Time) error {
	if lease == 0 {
		lease = l.lease
	}
	if h.Deadline().IsZero() && l.several {
		return contradiction("a lease of %v was granted, but the hold says that it has no deadline", lease)
	}
	if until := asked.Add(leastValidity(lease)); !h.Deadline().IsZero() && h.Deadline().Before(until) {
		return contradiction("a lease of %v was granted, but the deadline of the hold is %v before its end", lease,
			until.Sub(h.Deadline()))
	}
	return nil
}

// checkGrant compares the description that a hold has of itself with the request, which was made at an instant for an
// owner that is named at the server; "": it has another name there.
func (l *library) checkGrant(h held, a client.Acquire, owner string, asked time.Time) error {
	if s, ok := h.(*scope); ok {
		return l.checkScope(s, a)
	}
	if err := l.checkPromise(h, a.Lease, asked); err != nil {
		return err
	}
	if p, ok := h.(*lock.Permits); ok {
		return l.checkPermits(p, a.Permits, asked)
	}
	one, ok := holdOf(h)
	if !ok {
		return l.checkLevels(h, a)
	}
	event, seen := l.events.take(lock.Acquired, one)
	tokened, fenced := h.(interface{ Token() int64 })
	lease := a.Lease
	if lease == 0 {
		lease = l.lease
	}
	switch {
	case one.Name() != a.Key:
		return contradiction("the hold of %q says that it is of %q", a.Key, one.Name())
	case owner != "" && one.Owner() != owner:
		return contradiction("the hold of owner %q says that its owner is %q", owner, one.Owner())
	case one.Deadline().After(time.Now().Add(lease)):
		return contradiction("the deadline of the hold is later than its lease of %v allows", lease)
	case errors.Is(one.Err(), lock.ErrReleased):
		return contradiction("a hold has ended as released, but nobody has released it")
	case !seen:
		return errUnobserved
	case fenced && event.Token != tokened.Token():
		return contradiction("the event of the acquire has token %d, but the hold has %d", event.Token, tokened.Token())
	}
	return checkTook(event, asked)
}

var errUnobserved = contradiction("the observer got no event for the acquire")

// checkTook compares the duration of an acquire in its event with the time since the request.
func checkTook(event lock.Event, asked time.Time) error {
	if took := time.Since(asked); event.Took < 0 || event.Took > took+clockStep {
		return contradiction("the event says that the acquire took %v, but it took at most %v", event.Took, took)
	}
	return nil
}

// checkPermits compares the number of granted permits with the number requested and with that in the event.
func (l *library) checkPermits(p *lock.Permits, n int, asked time.Time) error {
	event, seen := l.events.takeAbout(lock.Acquired, p)
	switch {
	case p.Count() != n:
		return contradiction("%d permits were requested, and %d granted", n, p.Count())
	case !seen:
		return errUnobserved
	case event.Permits != n:
		return contradiction("the event of the acquire is about %d permits, but %d were granted", event.Permits, n)
	}
	return checkTook(event, asked)
}

// checkContext finds a hold that lasts although its context has ended: the end of the wait for it must not end that. It
// asks for the context only if the owner has asked for it before (see usesContexts), and not with option calls, with
// which the context of an acquire may be canceled (see acquireTwice).
func (l *library) checkContext(h held, owner string) error {
	if _, scoped := h.(*scope); scoped || l.varied || !l.contexts || !isEven(owner) {
		return nil
	}
	if ended := h.Context().Err(); ended != nil && h.Err() == nil {
		return contradiction("the hold lasts, but its context has ended: %v", ended)
	}
	return nil
}

// checkLevels compares the count of a hold of several locks with how often its owner holds each of their keys: the
// least counts. A key of which the owner has lost a hold may have more levels at the servers.
func (l *library) checkLevels(h held, a client.Acquire) error {
	n, counts := h.(interface{ Count() int })
	if !l.several || !counts {
		return nil
	}
	for _, key := range native.KeysOf(a.Hold()) {
		if most, known := l.holds.levels(key, a.Owner); known && n.Count() > most {
			return contradiction("the hold has count %d, but its owner has acquired %q %d times", n.Count(), key, most)
		}
	}
	return nil
}

// checkReleased compares the end of a release with the event about it.
func (l *library) checkReleased(h held, err error) error {
	if errors.Is(err, client.ErrContradiction) || errors.Is(err, errUnlocked) {
		return nil
	}
	var event lock.Event
	var seen bool
	one, single := holdOf(h)
	p, permits := h.(*lock.Permits)
	switch {
	case single:
		event, seen = l.events.take(lock.Released, one)
	case permits:
		event, seen = l.events.takeAbout(lock.Released, p)
	default:
		return nil
	}
	switch {
	case !seen:
		return contradiction("the observer got no event for the release")
	case (event.Err == nil) != (err == nil):
		return contradiction("the release returned error %v, but its event says %v", err, event.Err)
	case h.Err() == nil:
		return contradiction("a hold was released, but has not ended")
	}
	return nil
}

// extend renews h, to lease if that is not 0, and compares its deadlines.
func (l *library) extend(ctx context.Context, h held, lease time.Duration) error {
	before, asked := h.Deadline(), time.Now()
	renew := h.Renew
	if e, ok := h.(interface {
		Extend(ctx context.Context, lease time.Duration) error
	}); ok && lease > 0 {
		renew = func(ctx context.Context) error { return e.Extend(ctx, lease) }
	}
	if err := renew(ctx); err != nil {
		return err
	}
	if after := h.Deadline(); after.Before(before) {
		return contradiction("a renewal moved the deadline back by %v", before.Sub(after))
	}
	if lease > 0 && h.Err() == nil {
		return l.checkPromise(h, lease, asked)
	}
	return nil
}
