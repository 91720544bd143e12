package clientcheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/promise"
)

const key = "doctor"

// alone is how many clients have a process of their own; as many share one.
const alone = 2

// exclusion: a lock that is held is not granted, and is granted after its release.
func (c *checks) exclusion(ctx context.Context) bool {
	acquire, release := history.OpAcquire.String(), history.OpRelease.String()
	return c.expect(ctx, "acquire", 0, c.request(acquire, key, "a", longWait), "ok") &&
		c.refused(ctx) &&
		c.expect(ctx, "work", 0, client.Request{Op: history.OpWork.String(),
			Acquire: client.Acquire{Key: key, Owner: "a"}, Work: 10 * time.Millisecond}, "ok") &&
		c.expect(ctx, "release", 0, c.request(release, key, "a", 0), "ok") &&
		c.expect(ctx, "acquire after a release", 1, c.request(acquire, key, "c", longWait), "ok") &&
		c.expect(ctx, "release", 1, c.request(release, key, "c", 0), "ok")
}

// refused: a lock that is held is refused. A busy machine may let the wait end while a request is on its way, which is
// an unknown outcome, so the client is asked several times.
func (c *checks) refused(ctx context.Context) bool {
	const check, tries = "acquire of a held lock", 5
	for try := 1; ; try++ {
		r := c.request(history.OpAcquire.String(), key, fmt.Sprint("b", try), noWait)
		reply, err := c.send(ctx, 1, r, grace)
		if err == nil && reply.Type == "info" && try < tries {
			continue
		}
		return c.replied(check, r, reply, err, "fail")
	}
}

// refusals: operations that the lock cannot do, or on locks that it does not hold, are refused.
func (c *checks) refusals(ctx context.Context) {
	c.expect(ctx, "release of a lock not held", 0, c.request(history.OpRelease.String(), key, "a", 0), "fail")
	c.expect(ctx, "unknown operation", 0, client.Request{Op: "no-such-operation",
		Acquire: client.Acquire{Key: key, Owner: "d"}}, "fail")
	if !c.Lock.Can.Has(promise.ReadWrite) {
		r := c.request(history.OpAcquire.String(), key+"-mode", "e", noWait)
		r.Mode = "no-such-mode"
		c.expect(ctx, "unknown mode", 0, r, "fail")
	}
}

// source: the client connected from the address that it was given, by which faults identify it.
func (c *checks) source() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.noted) > 0 {
		c.failed("source", "%s", strings.Join(c.noted, "; "))
		return
	}
	for i := range alone {
		sum, err := c.links.Traffic(cluster.Link{From: cluster.ClientName(i), To: cluster.Any}, cluster.Forward)
		if err != nil || sum.Passed == 0 {
			c.failed("source", "client %d sent nothing to a server from its address (%v)", i, err)
			return
		}
	}
	c.add("source", true, "each client connects from its own address")
}

// outcomes: a request that was sent and got no reply has an unknown outcome. The replies of the servers are dropped
// until the client has replied; after that, the lock can be used again.
func (c *checks) outcomes(ctx context.Context) {
	link := cluster.Link{From: cluster.ClientName(0), To: cluster.Any}
	if err := c.links.SetRule(link, cluster.Back, cluster.Rule{Mode: cluster.Drop}); err != nil {
		c.failed("lost reply", "%v", err)
		return
	}
	c.lostReply(ctx)
	if err := c.links.SetRule(link, cluster.Back, cluster.Rule{}); err != nil {
		c.failed("lost reply", "%v", err)
	}
	c.expect(ctx, "acquire after an outage", 1, c.request(history.OpAcquire.String(), key+"-next", "g", longWait), "ok")
}

// lostReply: the servers may execute an acquire, and the client cannot know. A fail is wrong if a server granted it.
func (c *checks) lostReply(ctx context.Context) {
	const check, lost = "lost reply", key + "-lost"
	before := c.keys(ctx)
	reply, err := c.send(ctx, 0, c.request(history.OpAcquire.String(), lost, "f", noWait), grace)
	switch after := c.keys(ctx); {
	case err != nil:
		c.add(check, true, fmt.Sprintf("no reply within %s: a run counts the outcome as unknown", noWait+grace))
	case reply.Type == "ok":
		c.failed(check, "the acquire replied ok, although no server's reply can have reached the client")
	case reply.Type == "fail" && after > before:
		c.failed(check, "the servers have keys of the lock now, so the acquire may have happened; expected info, got %s",
			answer(reply, nil))
	default:
		c.add(check, true, answer(reply, nil))
	}
}

// shared: a program that hosts several clients says so, and a client of it that waits does not delay another.
func (c *checks) shared(ctx context.Context) {
	const check = "several clients in one process"
	c.env.PerProcess, c.alone = alone, true
	for i := alone; i < 2*alone; i++ {
		reply, err := c.setUp(ctx, i)
		switch {
		case errors.Is(err, client.ErrAlone):
			c.add(check, true, "no: scenarios with workload.per_process are not for it")
			return
		case err != nil || reply.Type != "ok":
			c.failed(check, "init: expected ok, got %s", answer(reply, err))
			return
		}
	}
	acquire, release := history.OpAcquire.String(), history.OpRelease.String()
	if !c.expect(ctx, check, alone, c.request(acquire, key+"-shared", "h", longWait), "ok") {
		return
	}
	granted := make(chan string, 1)
	go func() {
		reply, err := c.send(ctx, alone+1, c.request(acquire, key+"-shared", "i", longWait), grace)
		granted <- answer(reply, err)
	}()
	reply, err := c.send(ctx, alone, client.Request{Op: history.OpWork.String(),
		Acquire: client.Acquire{Key: key + "-shared", Owner: "h"}, Work: noWait}, grace)
	if err == nil {
		reply, err = c.send(ctx, alone, c.request(release, key+"-shared", "h", 0), grace)
	}
	if got := <-granted; err != nil || reply.Type != "ok" || got != "ok" {
		c.failed(check, "one waited while the other worked and released the lock: expected ok and ok, got %s and %s",
			answer(reply, err), got)
		return
	}
	c.alone = false
}

// keys is how many keys the servers have.
func (c *checks) keys(ctx context.Context) (n int) {
	inventory, ok := c.cluster.(cluster.Inventory)
	if !ok {
		return 0
	}
	for _, node := range c.cluster.Nodes() {
		keys, err := inventory.Keys(ctx, node.Name)
		if err == nil {
			n += len(keys)
		}
	}
	return n
}

// closeAll sends close: the clients exit.
func (c *checks) closeAll(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for i, cl := range c.clients {
		ctx, cancel := context.WithTimeout(ctx, grace)
		err := cl.Close(ctx)
		late := ctx.Err()
		cancel()
		switch {
		case err != nil:
			c.failed("close", "client %d: %v", i, err)
			return
		case late != nil:
			c.failed("close", "client %d replied ok, but had not exited after %s", i, grace)
			return
		}
	}
	c.add("close", true, "every client exited")
}
