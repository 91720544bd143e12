package lock

import (
	"context"
	"time"
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
	queues  *waitQueues
	channel string
	since   time.Time // see granted.since
	tried   bool      // a release that is sent again hands over nothing
}

// preparer is a requester whose next request may be sent for it.
type preparer interface {
	// next is that request, unless it has to be sent by the requester itself.
	next() (c call, ok bool)
}

// prepare is the next request of r, if it may be sent for it.
func prepare(r requester) (next call, prepared bool) {
	p, ok := r.(preparer)
	if !ok {
		return call{}, false
	}
	return p.next()
}

var _ preparer = (*attempt)(nil)

func (a *attempt) next() (call, bool) {
	s, ok := a.claim.store.(*single)
	if !ok || a.mode != chained || s.node.waitsForReplicas() {
		return call{}, false
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
func (s *single) handOver(ctx context.Context, c claim) (a answer, done bool) {
	h := c.handOver
	if h == nil || h.tried || ctx.Err() != nil {
		return answer{}, false
	}
	h.tried = true
	c.publish = notifyNone
	release := s.releaseCall(c)
	p := s.node.pipeFor(c.key)
	own := p.prepare(release)
	if !h.queues.handOver(h.channel, func(next call) *handed {
		heir := &handed{p, p.newRequest(next), time.Now(), h.since}
		if !p.push(own, heir.request) {
			return nil
		}
		return heir
	}) {
		return answer{}, false
	}
	return s.node.judged(p.await(ctx, own)), true
}
