package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Happening is what an [Event] tells of.
type Happening string

// What may happen to a lock, as far as this client knows.
const (
	Acquired    Happening = "acquired"
	NotAcquired Happening = "not acquired" // Err says why
	Renewed     Happening = "renewed"      // by the watchdog
	Released    Happening = "released"     // Err: nobody knows, or it had been lost
	Lost        Happening = "lost"         // before it was released
	Armed       Happening = "armed"        // a latch
	Counted     Happening = "counted"      // a latch, by one
	Passed      Happening = "passed"       // somebody who waited for a latch; Err: he was not let through
)

// Event is one thing that happened, for metrics and logs.
type Event struct {
	What  Happening
	Kind  string // "lock" (of every kind of mutex, and each side of a [RW]), "semaphore", "permits" or "latch"
	Lock  string // its name
	Owner string // of permits: the first id; of the counts of a latch: the participant
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
func (c *Client) tell(e Event) {
	if c.o.Logger != nil {
		c.log(e)
	}
	if c.o.Observe != nil {
		c.o.Observe(e)
	}
}

func (c *Client) log(e Event) {
	level := slog.LevelDebug
	if e.What == Lost || e.Err != nil && !errors.Is(e.Err, ErrHeld) && !errors.Is(e.Err, ErrReleased) {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String(e.Kind, e.Lock)}
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
	c.o.Logger.LogAttrs(context.Background(), level, e.Kind+" "+string(e.What), attrs...)
}

// begun is when something began, if anybody wants to be told how long it took.
func (c *Client) begun() time.Time {
	if c.observed() {
		return time.Now()
	}
	return time.Time{}
}

// tellOf tells of something that began then, if anybody wants to know; zero: nobody called.
func (c *Client) tellOf(e Event, begun time.Time) {
	if !c.observed() {
		return
	}
	if !begun.IsZero() {
		e.Took = time.Since(begun)
	}
	c.tell(e)
}

// tell tells of the end of an attempt.
func (a *attempt) tell(what Happening, token uint64, err error) {
	a.client.tellOf(Event{
		What: what, Kind: "lock", Lock: a.claim.name, Owner: a.claim.owner, Token: token, Err: err,
	}, a.begun)
}

// tell tells of what happened to a hold since begun; zero: nobody called.
func (h *Hold) tell(what Happening, begun time.Time, err error) {
	h.client.tellOf(Event{
		What: what, Kind: "lock", Lock: h.claim.name, Owner: h.claim.owner, Token: h.token, Err: err,
	}, begun)
}

// tell tells of what became of the permits that t asks for.
func (t *taking) tell(what Happening, begun time.Time, err error) {
	t.pool.client.tellOf(Event{
		What: what, Kind: t.pool.kind, Lock: t.pool.name, Owner: t.ids[0], Permits: t.permits, Err: err,
	}, begun)
}

// notice is called when permits were renewed by the watchdog, or lost.
func (p *Permits) notice(what Happening, err error) {
	p.tell(what, time.Time{}, err)
	o := p.pool.client.o
	switch {
	case what == Renewed && o.OnPermitsRenewed != nil:
		o.OnPermitsRenewed(p)
	case what == Lost && o.OnPermitsLost != nil:
		o.OnPermitsLost(p)
	}
}

func (p *Permits) tell(what Happening, begun time.Time, err error) {
	p.pool.client.tellOf(Event{
		What: what, Kind: p.pool.kind, Lock: p.pool.name, Owner: p.ids[0], Permits: p.permits, Err: err,
	}, begun)
}

func (l *Latch) tell(what Happening, participant string, begun time.Time, err error) {
	l.client.tellOf(Event{What: what, Kind: "latch", Lock: l.name, Owner: participant, Err: err}, begun)
}
