package lock

import (
	"context"
	"errors"
	"time"
)

// patienceUnit limits for how long a multi-lock keeps the locks that it has from others while it waits for the next
// one: one to two units.
const patienceUnit = time.Second

// patience limits for how long an acquire waits for other owners. The wait for a reply is not limited by it, but by the
// context. A nil patience has no limit.
type patience struct {
	until   time.Time // zero: no limit
	over    bool      // an acquire has ended because of it
	refused error     // the last refusal because of another owner
}

// limited reports whether there is a limit.
func (p *patience) limited() bool { return p != nil && !p.until.IsZero() }

// note records the refusal of a request because of another owner.
func (p *patience) note(why error) {
	if p != nil && errors.Is(why, ErrHeld) {
		p.refused = why
	}
}

// limit returns d, or the rest of the patience if that is shorter.
func (p *patience) limit(d time.Duration) time.Duration {
	if !p.limited() {
		return d
	}
	return min(d, max(time.Until(p.until), 0))
}

// ends reports whether the patience is over, and records that in p.over.
func (p *patience) ends() bool {
	if !p.limited() {
		return false
	}
	p.over = p.over || !time.Now().Before(p.until)
	return p.over
}

// runsOut reports whether the wait ends now because the patience is over. While the outcome of a request is unknown,
// the wait lasts until a server replies.
func (w *waitLoop) runsOut() bool { return !w.unanswered && w.patience.ends() }

// undo is [Client.undo]. With limited patience, in a multi-lock, it waits for the confirmation until ctx ends, because
// without it the multi-lock cannot start another round.
func (w *waitLoop) undo(ctx context.Context, why error, back func(ctx context.Context) error) error {
	return w.client.undo(ctx, w.patience.limited(), why, back)
}
