package lock

import (
	"context"
	"time"
)

// patienceUnit bounds for how long some locks are kept from others while another is
// waited for: one to two of it.
const patienceUnit = time.Second

// patience bounds for how long an acquire waits for other owners. It does not bound the wait for a reply: that ends
// with a context, which ends later. nil is without a bound.
type patience struct {
	until time.Time
	over  bool // an acquire has ended because of it
}

// limit is d, but no longer than the patience lasts.
func (p *patience) limit(d time.Duration) time.Duration {
	if p == nil {
		return d
	}
	return min(d, max(time.Until(p.until), 0))
}

// ends notes, and reports, whether it is over.
func (p *patience) ends() bool {
	if p == nil {
		return false
	}
	p.over = p.over || !time.Now().Before(p.until)
	return p.over
}

// runsOut reports whether the wait ends now, because its patience is over and the last reply says what there is to say.
// Where a request is without a reply, only the next reply does.
func (w *waitLoop) runsOut() bool { return !w.unanswered && w.patience.ends() }

// undo is [Client.undo]. While other locks are held for the call, whose caller is there as long as ctx lives, the
// proof that nothing is left is worth the wait: without it there is no other round.
func (w *waitLoop) undo(ctx context.Context, why error, back func(ctx context.Context) error) error {
	return w.client.undo(ctx, w.patience != nil, why, back)
}
