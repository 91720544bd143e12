package lock

import (
	"context"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// renewal is the reply for one claim that was to be renewed.
type renewal struct {
	kept bool
	sent time.Time
	err  error // not nil: there was no reply, and kept means nothing
}

// renewAll renews claims of one kind in one request, or, in a cluster, in one request for each slot, because a script
// may use only one slot. If the cluster is recognized only by the reply, as behind a proxy, each claim is sent alone
// (redisson#6867, #7116: none was renewed, and all locks ended). alone renews one claim by a request that names one
// key.
func renewAll(ctx context.Context, n *node, claims []claim, request func([]claim) wire.Call,
	alone func(claim) wire.Call) []renewal {
	if n.IsCluster() {
		out := renewApart(ctx, n, claims, request, func(i int) int { return wire.SlotOf(claims[i].key) })
		renewMigrating(ctx, n, claims, alone, out)
		return out
	}
	out := renewApart(ctx, n, claims, request, func(int) int { return 0 })
	if len(claims) == 1 || out[0].err == nil || !strings.Contains(out[0].err.Error(), "CROSSSLOT") {
		return out
	}
	return renewApart(ctx, n, claims, request, func(i int) int { return i })
}

// renewMigrating sends the requests again that were refused because a slot migrates, each claim in one of its own.
func renewMigrating(ctx context.Context, n *node, claims []claim, alone func(claim) wire.Call, out []renewal) {
	var refused []claim
	var at []int
	for i, r := range out {
		if isMigrating(r.err) {
			refused, at = append(refused, claims[i]), append(at, i)
		}
	}
	if len(refused) == 0 {
		return
	}
	one := func(some []claim) wire.Call { return alone(some[0]) }
	for i, r := range renewApart(ctx, n, refused, one, func(i int) int { return i }) {
		out[at[i]] = r
	}
}

// renewApart renews the claims of each part in one request, and all parts at the same time.
func renewApart(ctx context.Context, n *node, claims []claim, request func([]claim) wire.Call,
	part func(i int) int) []renewal {
	indexes := make([]int, len(claims))
	for i := range indexes {
		indexes[i] = i
	}
	parts := partition(indexes, part)
	calls := make([]wire.Call, len(parts))
	for i, at := range parts {
		some := make([]claim, len(at))
		for j, index := range at {
			some[j] = claims[index]
		}
		calls[i] = request(some)
	}
	sent := time.Now()
	out := make([]renewal, len(claims))
	send := n.DoAll
	if claims[0].fresh {
		send = n.DoFresh
	}
	for i, a := range send(ctx, calls) {
		r, err := wire.Reply{}, a.Err
		if err == nil {
			r, err = decode(a.Value, len(parts[i]))
		}
		for j, index := range parts[i] {
			out[index] = renewal{sent: sent, err: err, kept: err == nil && r.Int(j) == wire.CodeOK}
		}
	}
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
