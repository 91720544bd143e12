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
)

// Event is one thing that happened, for metrics and logs.
type Event struct {
	What  Happening
	Lock  string // its name
	Owner string
	Token uint64 // 0: none was minted
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
	attrs := []slog.Attr{slog.String("lock", e.Lock), slog.String("owner", e.Owner)}
	if e.Token > 0 {
		attrs = append(attrs, slog.Uint64("token", e.Token))
	}
	if e.Took > 0 {
		attrs = append(attrs, slog.Duration("took", e.Took))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	c.o.Logger.LogAttrs(context.Background(), level, "lock "+string(e.What), attrs...)
}

// tell tells of the end of an attempt.
func (a *attempt) tell(what Happening, token uint64, err error) {
	if !a.client.observed() {
		return
	}
	e := Event{What: what, Lock: a.claim.name, Owner: a.claim.owner, Token: token, Err: err}
	if !a.begun.IsZero() {
		e.Took = time.Since(a.begun)
	}
	a.client.tell(e)
}

// tell tells of what happened to a hold since begun; zero: nobody called.
func (h *Hold) tell(what Happening, begun time.Time, err error) {
	if !h.client.observed() {
		return
	}
	e := Event{What: what, Lock: h.claim.name, Owner: h.claim.owner, Token: h.token, Err: err}
	if !begun.IsZero() {
		e.Took = time.Since(begun)
	}
	h.client.tell(e)
}
