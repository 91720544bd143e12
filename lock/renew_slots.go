package lock

import (
	"context"
	"strings"
	"sync"
)

// renewBySlot has claims renewed by renew, all at once, or, in a cluster, those
// of each slot by themselves: a script may touch only one. Where that shows no
// earlier than in the answer, as behind a proxy, each claim goes alone
// (redisson#6867, #7116: none was renewed, and all locks ended).
func renewBySlot(n *node, claims []claim, renew func([]claim) []renewal) []renewal {
	if !clustered(n.rdb) {
		out := renew(claims)
		if len(claims) == 1 || out[0].err == nil || !strings.Contains(out[0].err.Error(), "CROSSSLOT") {
			return out
		}
		return renewApart(claims, func(i int) int { return i }, renew)
	}
	return renewApart(claims, func(i int) int { return slotOf(claims[i].name) }, renew)
}

// renewApart has claims of the same part renewed together, and all parts side by
// side: a master that hangs must not keep the holds on others waiting.
func renewApart(claims []claim, part func(i int) int, renew func([]claim) []renewal) []renewal {
	parts := make(map[int][]int)
	for i := range claims {
		parts[part(i)] = append(parts[part(i)], i)
	}
	out := make([]renewal, len(claims))
	var wg sync.WaitGroup
	for _, places := range parts {
		wg.Go(func() {
			some := make([]claim, len(places))
			for i, at := range places {
				some[i] = claims[at]
			}
			for i, r := range renew(some) {
				out[places[i]] = r
			}
		})
	}
	wg.Wait()
	return out
}

// renew is that of a mutex.
func (s *fairStore) renew(ctx context.Context, claims []claim) []renewal {
	return renewBySlot(s.node, claims, func(some []claim) []renewal { return s.single.renew(ctx, some) })
}

// renew prolongs each hold by itself, whoever else has the same lock.
func (s *rwStore) renew(ctx context.Context, claims []claim) []renewal {
	return renewBySlot(s.node, claims, func(some []claim) []renewal { return s.renewTogether(ctx, some) })
}
