package lock

import (
	"context"
	"time"
)

// patienceUnit limits for how long a multi-lock keeps the locks that it has from others while it waits for the next
// one: one to two units.
const patienceUnit = time.Second

// patience limits for how long an acquire waits for other owners. The wait for a reply is not limited by it, but by the
// context. A nil patience has no limit.
type patience struct {
	until time.Time
	over  bool // an acquire has ended because of it
}

// limit returns d, or the rest of the patience if that is shorter.
func (p *patience) limit(d time.Duration) time.Duration {
	if p == nil {
		return d
	}
	return min(d, max(time.Until(p.until), 0))
}

// ends reports whether the patience is over, and records that in p.over.
func (p *patience) ends() bool {
	if p == nil {
		return false
	}
	p.over = p.over || !time.Now().Before(p.until)
	return p.over
}

// runsOut reports whether the wait ends now because the patience is over. While the outcome of a request is unknown,
// the wait lasts until a server replies.
func (w *waitLoop) runsOut() bool { return !w.unanswered && w.patience.ends() }

// undo is [Client.undo]. In a multi-lock (patience is not nil) it waits for the confirmation until ctx ends: without it
// the multi-lock cannot start another round.
func (w *waitLoop) undo(ctx context.Context, why error, back func(ctx context.Context) error) error {
	return w.client.undo(ctx, w.patience != nil, why, back)
}
