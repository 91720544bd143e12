package lock

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wait"
	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// A release of a mutex for which other goroutines of this client wait sends the acquire of the first of them in the
// same pipeline, so that a grant takes one round trip and no message. The lock is free only for an instant, so
// waiters of other clients would not get it. Therefore a client hands it over for at most handOverFor, counted from a
// grant that was not handed over. The next release wakes the waiters of all clients, which compete as usual.

// handOverFor is for how long a lock may stay with one client. A holder that works for longer than that hands over
// nothing: then a round trip does not count.
const handOverFor = 10 * time.Millisecond

// handingOver is a release that may hand its lock over.
type handingOver struct {
	queues  *wait.Queues
	channel string
	since   time.Time // see granted.since
	tried   bool      // a release that is sent again hands over nothing
}

// preparer is a requester whose next request may be sent for it.
type preparer interface {
	// next is that request, unless it has to be sent by the requester itself.
	next() (c wire.Call, ok bool)
}

// prepare is the next request of r, if it may be sent for it.
func prepare(r requester) (next wire.Call, prepared bool) {
	p, ok := r.(preparer)
	if !ok {
		return wire.Call{}, false
	}
	return p.next()
}

var _ preparer = (*attempt)(nil)

func (a *attempt) next() (wire.Call, bool) {
	s, ok := a.claim.store.(*single)
	if !ok || a.mode != chained || s.node.WaitsForReplicas() {
		return wire.Call{}, false
	}
	return s.acquireCall(a.claim), true
}

// mayHandOver is for the release of h, for which goroutines of this client wait in the queue of a channel; nil: it must
// not hand over.
func (h *Hold) mayHandOver(channel string) *handingOver {
	if time.Since(h.since) >= handOverFor {
		return nil
	}
	return &handingOver{queues: h.client.queues, channel: channel, since: h.since}
}

// handOver releases c and hands the lock over, unless it reports false: then it has sent nothing. It need not publish
// for waiters of this client, and one of another client that was refused has left a mark.
func (s *single) handOver(ctx context.Context, c claim) (a wire.Answer, done bool) {
	h := c.handOver
	if h == nil || h.tried || ctx.Err() != nil {
		return wire.Answer{}, false
	}
	h.tried = true
	c.publish = wait.NotifyNone
	release := s.releaseCall(c)
	p := s.node.PipeFor(c.key)
	own := p.Prepare(release)
	if !h.queues.HandOver(h.channel, func(next wire.Call) *wait.Handed {
		heir := &wait.Handed{Pipe: p, Request: p.NewRequest(next), Sent: time.Now(), Since: h.since}
		if !p.Push(own, heir.Request) {
			return nil
		}
		return heir
	}) {
		return wire.Answer{}, false
	}
	return s.node.Judged(p.Await(ctx, own)), true
}
