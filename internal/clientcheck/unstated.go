package clientcheck

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
)

// NotStated is the check for promises that a lock keeps without stating them: they are never wrong, but nothing judges
// them.
const NotStated = "not stated"

// The watch for renewals: a lock that renews a lease of ten seconds every third of it does so in this time.
const (
	renewWatch = 3600 * time.Millisecond
	renewPoll  = 50 * time.Millisecond
	shortLease = 1500 * time.Millisecond
)

// sees notes that the lock keeps a promise that it may not have stated.
func (c *checks) sees(p promise.Set, how string) {
	if !c.Lock.Can.Has(p) && !c.unstated.Has(p) {
		c.unstated |= p
		c.add(NotStated, true, fmt.Sprintf("%s: state `%s`, else it is not judged", how, p))
	}
}

// tries grants of clients without a fault, each of its keys once, that show promises which the lock does not state. A
// refusal shows nothing.
func (c *checks) tries(ctx context.Context) {
	request := func(op, name, owner string, more client.Acquire) client.Request {
		r := c.request(op, key+"-"+name, owner, noWait)
		r.Mode, r.Permits, r.Limit = more.Mode, more.Permits, more.Limit
		return r
	}
	acquire, none := history.OpAcquire.String(), client.Acquire{}
	two, read := client.Acquire{Permits: 1, Limit: 2}, client.Acquire{Mode: "read"}
	renew := request(history.OpRenew.String(), "renewed", "j", none)
	renew.Lease = lease
	for _, t := range []struct {
		shows         promise.Set
		how           string
		first, second client.Request
	}{
		{promise.Renew, "it renews a lease when its owner requests it", request(acquire, "renewed", "j", none), renew},
		{promise.Reentrant | promise.RefusesReentry, "an owner that has it gets it again",
			request(acquire, "again", "k", none), request(acquire, "again", "k", none)},
		{promise.Permits, "two owners get one permit each, if there are two", request(acquire, "permits", "l", two),
			request(acquire, "permits", "m", two)},
		{promise.ReadWrite, "two readers get it at once", request(acquire, "read", "n", read),
			request(acquire, "read", "o", read)},
	} {
		if c.Lock.Can.Any(t.shows | promise.Permits | promise.ReadWrite | promise.Unleased | promise.Latch) {
			continue
		}
		if c.granted(ctx, t.first) && c.granted(ctx, t.second) {
			c.sees(t.shows.Without(promise.RefusesReentry), t.how)
		}
	}
}

// granted sends a request to the first client and reports whether the reply is ok.
func (c *checks) granted(ctx context.Context, r client.Request) bool {
	reply, err := c.send(ctx, 0, r, grace)
	return err == nil && reply.Type == "ok"
}

// renewals watches the leases of two holds, one of them without a lease in its request, until the function that it
// returns is called: that reports whether one of them became longer without a request.
func (c *checks) renewals(ctx context.Context) func() {
	inventory, ok := c.cluster.(cluster.Inventory)
	if !ok || c.Lock.Can.Any(promise.Watchdog|promise.Unleased|promise.Latch) {
		return func() {}
	}
	const name = key + "-lease"
	for i, d := range []time.Duration{shortLease, 0} {
		r := c.request(history.OpAcquire.String(), fmt.Sprint(name, i), fmt.Sprint("p", i), noWait)
		r.Lease = d
		c.granted(ctx, r)
	}
	longer := make(chan bool, 1)
	go func() { longer <- c.watch(ctx, inventory, name) }()
	return func() {
		if <-longer {
			c.sees(promise.Watchdog, "it renews the lease of a hold without a request")
		}
	}
}

// watch reports whether the time to live of a key with that name in its own becomes longer.
func (c *checks) watch(ctx context.Context, inventory cluster.Inventory, name string) bool {
	left, end := map[string]time.Duration{}, time.Now().Add(renewWatch)
	for ; time.Now().Before(end) && ctx.Err() == nil; time.Sleep(renewPoll) {
		for _, node := range c.cluster.Nodes() {
			keys, err := inventory.Keys(ctx, node.Name)
			if err != nil {
				continue
			}
			for k, ttl := range keys { // order does not matter
				at := node.Name + " " + k
				if before, seen := left[at]; seen && strings.Contains(k, name) && ttl > before && before > 0 {
					return true
				}
				left[at] = ttl
			}
		}
	}
	return false
}
