package lock

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// EventKind is the subject of an [Event].
type EventKind string

// The kinds of events, as far as this client knows of them.
const (
	Acquired    EventKind = "acquired"
	NotAcquired EventKind = "not acquired" // Err says why
	Renewed     EventKind = "renewed"      // by the watchdog
	Released    EventKind = "released"     // Err: the outcome is unknown, or it had been lost
	Lost        EventKind = "lost"         // before it was released
	Armed       EventKind = "armed"        // a latch
	Counted     EventKind = "counted"      // a latch, down by one
	Passed      EventKind = "passed"       // a wait for a latch has ended; Err: the latch is not open
	// Polling says, once, that the server refuses subscriptions, for example to a user without rights for channels:
	// waiters are not woken, and poll. Name is the first channel that was refused, Err the refusal. The event is
	// repeated only after a subscription has succeeded.
	Polling EventKind = "polling"
	// Unreachable says that an acquire or a wait has had no reply and continues: an address may be wrong, and without a
	// deadline no error would say so. Err is the last error, if any. The event comes at most every ten seconds.
	Unreachable EventKind = "unreachable"
)

// Event is one thing that happened, for metrics and logs.
type Event struct {
	Kind EventKind
	// Context is that of the call that has ended, for its values, such as the parent of a span (example of package
	// lock/etcd). Nil: no call caused it.
	Context context.Context //nolint:containedctx // an event is passed on at once
	// Primitive is "lock" (of every kind of mutex, and each side of a [RW]), "semaphore", "permits", "latch",
	// "channel" (of Polling), or "wait" (of Unreachable, for any of them).
	Primitive string
	Name      string // of the lock, semaphore or latch
	Owner     string // of permits on Redis: the first id; of the counts of a latch: the participant
	// Permits is how many were requested; 0: the primitive has none.
	Permits int
	Token   int64 // 0: none was minted
	// Took is from the call of Acquire or Release to its end; 0 for an event that no call caused.
	Took time.Duration
	Err  error
}

// noCall is the context of an event that no call has caused.
func noCall() context.Context { return nil }

// observed reports whether events are wanted.
func (c *Client) observed() bool { return c.o.Observe != nil || c.o.Logger != nil }

// startTime is now if events are wanted: to read the clock takes time.
func (c *Client) startTime() time.Time {
	if c.observed() {
		return time.Now()
	}
	return time.Time{}
}

// emit reports an event that began then; zero: no call began it. No mutex is held.
func (c *Client) emit(ctx context.Context, e Event, started time.Time) {
	if !c.observed() {
		return
	}
	e.Context = ctx
	if !started.IsZero() {
		e.Took = time.Since(started)
	}
	if c.o.Logger != nil {
		e.Log(c.o.Logger)
	}
	if c.o.Observe != nil {
		c.o.Observe(e)
	}
}

// Log writes e as a debug message, or as a warning if it is a problem, as Options.Logger does.
func (e Event) Log(logger *slog.Logger) {
	level := slog.LevelDebug
	if e.Kind == Lost || e.Err != nil && !errors.Is(e.Err, ErrHeld) && !errors.Is(e.Err, ErrReleased) {
		level = slog.LevelWarn
	}
	ctx := e.Context
	if ctx == nil {
		ctx = context.Background()
	}
	attrs := []slog.Attr{slog.String(e.Primitive, e.Name)}
	if e.Owner != "" {
		attrs = append(attrs, slog.String("owner", e.Owner))
	}
	if e.Permits > 0 {
		attrs = append(attrs, slog.Int("permits", e.Permits))
	}
	if e.Token > 0 {
		attrs = append(attrs, slog.Int64("token", e.Token))
	}
	if e.Took > 0 {
		attrs = append(attrs, slog.Duration("took", e.Took))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	logger.LogAttrs(ctx, level, e.Primitive+" "+string(e.Kind), attrs...)
}

// emitClaim is emit for a hold, or for an attempt to get it.
func (c *Client) emitClaim(
	ctx context.Context, kind EventKind, cl *claim, token int64, started time.Time, err error,
) {
	if !c.observed() {
		return
	}
	e := Event{
		Kind: kind, Primitive: cl.store.kind(), Name: cl.name, Owner: cl.owner,
		Permits: cl.permits, Token: token, Err: err,
	}
	if s, ok := cl.store.(*permitStore); ok {
		e.Owner = s.ids(*cl)[0]
	}
	c.emit(ctx, e, started)
}

// unreachableEvery is the least time between two events of the kind Unreachable.
const unreachableEvery = 10 * time.Second

// reportUnreachable is called with each error of a request that a waiter will send again.
func (c *Client) reportUnreachable(name string, err error) {
	now := time.Now().UnixNano()
	last := c.unreachable.Load()
	if last != 0 && now-last < int64(unreachableEvery) || !c.unreachable.CompareAndSwap(last, now) {
		return
	}
	c.emit(noCall(), Event{Kind: Unreachable, Primitive: "wait", Name: name, Err: err}, time.Time{})
}

// reportPolling is called when waiters begin to poll because a subscription was refused.
func (c *Client) reportPolling(channel string, err error) {
	c.emit(noCall(), Event{Kind: Polling, Primitive: "channel", Name: channel, Err: err}, time.Time{})
}

func (l *Latch) emit(ctx context.Context, kind EventKind, participant string, started time.Time, err error) {
	l.client.emit(ctx, Event{Kind: kind, Primitive: "latch", Name: l.name, Owner: participant, Err: err}, started)
}
