package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Happening is what an [Event] tells of.
type EventKind string

// What may happen to a lock, as far as this client knows.
const (
	Acquired    EventKind = "acquired"
	NotAcquired EventKind = "not acquired" // Err says why
	Renewed     EventKind = "renewed"      // by the watchdog
	Released    EventKind = "released"     // Err: nobody knows, or it had been lost
	Lost        EventKind = "lost"         // before it was released
	Armed       EventKind = "armed"        // a latch
	Counted     EventKind = "counted"      // a latch, by one
	Passed      EventKind = "passed"       // somebody who waited for a latch; Err: he was not let through
)

// Event is one thing that happened, for metrics and logs.
type Event struct {
	Kind      EventKind
	Primitive string // "lock" (of every kind of mutex, and each side of a [RW]), "semaphore", "permits" or "latch"
	Name      string // its name
	Owner     string // of permits: the first id; of the counts of a latch: the participant
	// Permits is how many there are in question; 0 for what has none.
	Permits int
	Token   uint64 // 0: none was minted
	// Took is from the call of Acquire or Release to its end; 0 for what nobody called.
	Took time.Duration
	Err  error
}

// observed is whether anybody wants to be told, so that nobody asks the time in vain.
func (c *Client) observed() bool { return c.o.Observe != nil || c.o.Logger != nil }

// tell tells whoever wants to know. No mutex is held meanwhile.
func (c *Client) emit(e Event) {
	if c.o.Logger != nil {
		c.log(e)
	}
	if c.o.Observe != nil {
		c.o.Observe(e)
	}
}

func (c *Client) log(e Event) {
	level := slog.LevelDebug
	if e.Kind == Lost || e.Err != nil && !errors.Is(e.Err, ErrHeld) && !errors.Is(e.Err, ErrReleased) {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String(e.Primitive, e.Name)}
	if e.Owner != "" {
		attrs = append(attrs, slog.String("owner", e.Owner))
	}
	if e.Permits > 0 {
		attrs = append(attrs, slog.Int("permits", e.Permits))
	}
	if e.Token > 0 {
		attrs = append(attrs, slog.Uint64("token", e.Token))
	}
	if e.Took > 0 {
		attrs = append(attrs, slog.Duration("took", e.Took))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	c.o.Logger.LogAttrs(context.Background(), level, e.Primitive+" "+string(e.Kind), attrs...)
}

// begun is when something began, if anybody wants to be told how long it took.
func (c *Client) startTime() time.Time {
	if c.observed() {
		return time.Now()
	}
	return time.Time{}
}

// tellOf tells of something that began then, if anybody wants to know; zero: nobody called.
func (c *Client) emitSince(e Event, begun time.Time) {
	if !c.observed() {
		return
	}
	if !begun.IsZero() {
		e.Took = time.Since(begun)
	}
	c.emit(e)
}

// tell tells of the end of an attempt.
func (a *attempt) emit(what EventKind, token uint64, err error) {
	a.client.emitSince(Event{
		Kind: what, Primitive: "lock", Name: a.claim.name, Owner: a.claim.owner, Token: token, Err: err,
	}, a.started)
}

// tell tells of what happened to a hold since begun; zero: nobody called.
func (h *Hold) emit(what EventKind, begun time.Time, err error) {
	h.client.emitSince(Event{
		Kind: what, Primitive: "lock", Name: h.claim.name, Owner: h.claim.owner, Token: h.token, Err: err,
	}, begun)
}

// tell tells of what became of the permits that t asks for.
func (t *taking) emit(what EventKind, begun time.Time, err error) {
	t.pool.client.emitSince(Event{
		Kind: what, Primitive: t.pool.kind, Name: t.pool.name, Owner: t.ids[0], Permits: t.permits, Err: err,
	}, begun)
}

// notice is called when permits were renewed by the watchdog, or lost.
func (p *Permits) onRenewal(what EventKind, err error) {
	p.emit(what, time.Time{}, err)
	o := p.pool.client.o
	switch {
	case what == Renewed && o.OnPermitsRenewed != nil:
		o.OnPermitsRenewed(p)
	case what == Lost && o.OnPermitsLost != nil:
		o.OnPermitsLost(p)
	}
}

func (p *Permits) emit(what EventKind, begun time.Time, err error) {
	p.pool.client.emitSince(Event{
		Kind: what, Primitive: p.pool.kind, Name: p.pool.name, Owner: p.ids[0], Permits: p.permits, Err: err,
	}, begun)
}

func (l *Latch) emit(what EventKind, participant string, begun time.Time, err error) {
	l.client.emitSince(Event{Kind: what, Primitive: "latch", Name: l.name, Owner: participant, Err: err}, begun)
}
