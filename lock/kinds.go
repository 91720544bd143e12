package lock

import "context"

// kinds hands what is asked of a client over to the store of the kind of lock
// that it is asked of; the store within is that of the plain mutex.
type kinds struct{ store }

func (k kinds) of(c claim) store {
	if c.store != nil {
		return c.store
	}
	return k.store
}

func (k kinds) acquire(ctx context.Context, c claim) (grant, error) { return k.of(c).acquire(ctx, c) }

func (k kinds) release(ctx context.Context, c claim) (left int, err error) {
	return k.of(c).release(ctx, c)
}

// renew asks each store for its own; the answers come in the order of claims.
func (k kinds) renew(ctx context.Context, claims []claim) []renewal {
	groups := make(map[store][]int)
	for i, c := range claims {
		groups[k.of(c)] = append(groups[k.of(c)], i)
	}
	if len(groups) == 1 {
		return k.of(claims[0]).renew(ctx, claims)
	}
	out := make([]renewal, len(claims))
	for s, places := range groups {
		some := make([]claim, len(places))
		for i, at := range places {
			some[i] = claims[at]
		}
		for i, r := range s.renew(ctx, some) {
			out[places[i]] = r
		}
	}
	return out
}
