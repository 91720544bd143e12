package lock

import (
	"context"
	"strings"
	"sync"
	"time"
)

// renewal is the reply for one claim that was to be renewed.
type renewal struct {
	kept bool
	sent time.Time
	err  error // not nil: there was no reply, and kept means nothing
}

// renewAll renews claims of one kind, all in one request, or, in a cluster, those
// of each slot in one: a script may touch only one. Where that shows no earlier
// than in the reply, as behind a proxy, each claim goes alone (redisson#6867,
// #7116: none was renewed, and all locks ended).
func renewAll(ctx context.Context, n *node, claims []claim, request func([]claim) call) []renewal {
	send := func(some []claim) []renewal { return renewTogether(ctx, n, request(some), len(some)) }
	if clustered(n.rdb) {
		return renewApart(claims, func(i int) int { return slotOf(claims[i].name) }, send)
	}
	out := send(claims)
	if len(claims) == 1 || out[0].err == nil || !strings.Contains(out[0].err.Error(), "CROSSSLOT") {
		return out
	}
	return renewApart(claims, func(i int) int { return i }, send)
}

// renewTogether sends one request that renews n claims.
func renewTogether(ctx context.Context, nd *node, request call, n int) []renewal {
	sent := time.Now()
	value, err := nd.do(ctx, request)
	var r reply
	if err == nil {
		r, err = decode(value, n)
	}
	out := make([]renewal, n)
	for i := range out {
		out[i] = renewal{sent: sent, err: err, kept: err == nil && r.int(i) == codeOK}
	}
	return out
}

// renewApart renews the claims of each part in one request, and all parts at the
// same time: a master that hangs must not keep the holds on others waiting.
func renewApart(claims []claim, part func(i int) int, send func([]claim) []renewal) []renewal {
	indexes := make([]int, len(claims))
	for i := range indexes {
		indexes[i] = i
	}
	out := make([]renewal, len(claims))
	var wg sync.WaitGroup
	for _, at := range partition(indexes, part) {
		wg.Go(func() {
			some := make([]claim, len(at))
			for i, index := range at {
				some[i] = claims[index]
			}
			for i, r := range send(some) {
				out[at[i]] = r
			}
		})
	}
	wg.Wait()
	return out
}

// partition splits list into lists of the same key, in the order of their first elements.
func partition[T any, K comparable](list []T, key func(T) K) [][]T {
	at := make(map[K]int)
	var parts [][]T
	for _, v := range list {
		i, ok := at[key(v)]
		if !ok {
			i = len(parts)
			at[key(v)] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], v)
	}
	return parts
}
