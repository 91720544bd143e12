package lock

import (
	"context"
	"errors"
	"time"
)

// multiBackoffUnit limits for how long a multi-lock keeps the locks that it has from others while it waits for the next
// one: one to two units.
const multiBackoffUnit = time.Second

// multiBackoff limits for how long an acquire of a part of a multi-lock waits for other owners, before the multi-lock
// releases the parts that it has and starts another round. Only the context limits the wait for a reply. A nil one has
// no limit.
type multiBackoff struct {
	until   time.Time // zero: no limit
	over    bool      // an acquire has ended because of it
	refused error     // the last refusal because of another owner
}

// limited reports whether there is a limit.
func (p *multiBackoff) limited() bool { return p != nil && !p.until.IsZero() }

// note records the refusal of a request because of another owner.
func (p *multiBackoff) note(why error) {
	if p != nil && errors.Is(why, ErrHeld) {
		p.refused = why
	}
}

// limit returns d, or the time until the backoff if that is shorter.
func (p *multiBackoff) limit(d time.Duration) time.Duration {
	if !p.limited() {
		return d
	}
	return min(d, max(time.Until(p.until), 0))
}

// due reports whether it is time to back off, and records that in p.over.
func (p *multiBackoff) due() bool {
	if !p.limited() {
		return false
	}
	p.over = p.over || !time.Now().Before(p.until)
	return p.over
}

// backsOff reports whether the wait ends now because the multi-lock backs off. While the outcome of a request is
// unknown, the wait lasts until a server replies.
func (w *waitLoop) backsOff() bool { return !w.unanswered && w.backoff.due() }

// undo is [Client.undo]. In a multi-lock that backs off, it waits for the confirmation until ctx ends, because
// without it the multi-lock cannot start another round.
func (w *waitLoop) undo(ctx context.Context, why error, back func(ctx context.Context) error) error {
	return w.client.undo(ctx, w.backoff.limited(), why, back)
}
