package gate

import (
	"context"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/requests"
)

// copies makes the server execute requests of one connection twice, see [cluster.Rule].Twice.
type copies struct {
	gate     *Gate
	requests requests.Splitter
}

// take parses the caller's bytes, and returns copies of the requests that the rule concerns.
func (k *copies) take(data []byte, rule cluster.Rule, p *pump) (all []requests.Copy) {
	if rule.Twice == 0 {
		k.requests.Take(data, nil)
		return nil
	}
	k.requests.Take(data, func(copied func() requests.Copy) {
		if p.dice.Concerned(rule) {
			all = append(all, copied())
		}
	})
	return all
}

// send sends the copies. With BeforeReply it sends them at once, and waits before the requests themselves pass; with
// AfterReply the function that it returns, to be called when the requests have passed, sends them later.
func (k *copies) send(all []requests.Copy, now *state, p *pump) (then func()) {
	if now.rule.Twice == cluster.BeforeReply {
		executed := int64(0)
		for _, one := range all {
			if k.gate.execute(p.conn.ctx, one) {
				executed++
			}
		}
		if executed > 0 { // after an error nothing is resent
			now.wait(p.conn.ctx, p.dice.Late(now.rule))
		}
		p.dir.twice.Add(executed) // before the request passes, so that it is counted before the client gets the reply
		return func() {}
	}
	return func() {
		for _, one := range all {
			late := p.dice.Late(now.rule)
			k.gate.tasks.Go(func() {
				if now.wait(k.gate.ctx, late) && k.gate.execute(k.gate.ctx, one) {
					p.dir.twice.Add(1)
				}
			})
		}
	}
}

// wait waits for d, and reports whether the rule is still in force then.
func (s *state) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.changed:
	case <-ctx.Done():
	}
	return false
}

// execute sends a copy on a connection of its own, and reports whether the server has executed it.
func (g *Gate) execute(ctx context.Context, one requests.Copy) bool {
	g.mu.Lock()
	dialer := g.dialer
	g.mu.Unlock()
	server, err := dialer(ctx)
	if err != nil {
		return false
	}
	defer abort(server)
	defer context.AfterFunc(ctx, func() { abort(server) })()
	if _, err := server.Write(one.Data); err != nil {
		return false
	}
	var replies []byte
	for buf := make([]byte, minBuffer); ; {
		n, err := server.Read(buf)
		replies = append(replies, buf[:n]...)
		if all, executed := one.Executed(replies); all || err != nil {
			return executed
		}
	}
}
