package lock

import (
	"context"
	"fmt"
	"time"
)

// single keeps locks on one master. It is also one voice of a quorum.
type single struct {
	node         *node
	scripts      *scripts
	tombstoneTTL int64 // milliseconds
	tokens       bool  // mint a fencing token with each grant
}

var _ store = (*single)(nil)

func (s *single) acquire(ctx context.Context, c claim) (grant, error) {
	sent := time.Now()
	value, err := s.node.take(ctx, s.request(c))
	if err != nil {
		return grant{}, err
	}
	return grantOf(c, value, sent)
}

// message is a request that is sent most often: all of it in one piece of memory.
type message struct {
	claim     claim
	tombstone string
	args      [10]any
}

// request is the run of the script that asks for c.
func (s *single) request(c claim) call {
	m := &message{claim: c, tombstone: c.tombstoneKey()}
	script := s.scripts.acquire
	line := append(m.args[:0], "evalsha", nil, 2, &m.claim.name, &m.tombstone)
	if s.tokens || c.fence {
		script, line[2] = s.scripts.fenced, 3
		line = append(line, c.tokenKey())
	}
	line[1] = &script.digest
	line = append(line, &m.claim.id)
	what := c.flags()
	if what != "" || c.owner != c.id || c.lease != s.scripts.lease {
		line = append(line, &m.claim.lease)
	}
	if what != "" || c.owner != c.id {
		line = append(line, &m.claim.owner)
	}
	if what != "" {
		line = append(line, what)
	}
	return call{script: script, ready: line}
}

// yesNo is how scripts are told yes or no.
func yesNo(yes bool) any {
	if yes {
		return "1"
	}
	return "0"
}

// grantOf reads the answer to a request that was sent at sent.
func grantOf(c claim, value any, sent time.Time) (grant, error) {
	if token, is := value.(int64); is { // the lock was free
		return grant{ok: true, count: 1, token: uint64(token), sent: sent}, nil
	}
	n, err := integers(value, 4)
	switch {
	case err != nil:
		return grant{}, err
	case n[0] == -1:
		return grant{}, &requestError{rejected, fmt.Errorf("hold %s: %w", c.id, ErrReleased)}
	case n[0] == -2:
		return grant{}, &requestError{rejected, ErrReentered}
	}
	return grant{
		ok:    n[0] == 1,
		count: int(n[1]),
		token: uint64(n[2]),
		ttl:   time.Duration(n[3]) * time.Millisecond,
		sent:  sent,
	}, nil
}

func (s *single) release(ctx context.Context, c claim) (int, error) {
	m := &message{claim: c, tombstone: c.tombstoneKey()}
	line := append(m.args[:0], "evalsha", &s.scripts.release.digest, 3, &m.claim.name, &m.tombstone, c.freeChannel())
	if c.oldTombstone != "" {
		line[2] = 4
		line = append(line, &m.claim.oldTombstone)
	}
	line = append(line, &m.claim.id)
	if c.releaseNotify != "" || c.owner != c.id {
		line = append(line, &m.claim.owner)
	}
	if c.releaseNotify != "" {
		line = append(line, c.releaseNotify)
	}
	value, err := s.node.do(ctx, call{script: s.scripts.release, ready: line})
	if err != nil {
		return 0, err
	}
	left, ok := value.(int64)
	if !ok {
		return 0, &requestError{unknown, fmt.Errorf("the server answered %v, want an integer", value)}
	}
	return int(left), nil
}

func (s *single) renew(ctx context.Context, claims []claim) []renewal {
	return renewBySlot(s.node, claims, func(some []claim) []renewal { return s.renewAll(ctx, some) })
}

// renewAll renews claims by one script.
func (s *single) renewAll(ctx context.Context, claims []claim) []renewal {
	c := call{script: s.scripts.renew}
	for _, cl := range claims {
		c.keys = append(c.keys, cl.name)
		c.args = append(c.args, cl.id, cl.lease)
	}
	out := make([]renewal, len(claims))
	sent := time.Now()
	value, err := s.node.do(ctx, c)
	var kept []int64
	if err == nil {
		kept, err = integers(value, len(claims))
	}
	for i := range out {
		out[i] = renewal{sent: sent, err: err}
		if err == nil {
			out[i].kept = kept[i] == 1
		}
	}
	return out
}
