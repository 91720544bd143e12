package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// Check asks every master whether it is suitable for locks, and returns all problems, as [ErrUnfit]: a Redis before
// 6.2; a memory limit with a policy that evicts keys, which removes held locks (every key of a lock has an expiry, so
// volatile policies remove them too); two masters of a quorum that are one server. It needs the permission to run
// INFO. Call it when a program starts: no other function checks the version or the policy.
func (c *Client) Check(ctx context.Context) error {
	var mu sync.Mutex
	var errs []error
	ids := make(map[string]string)
	check := func(ctx context.Context, rdb *redis.Client) error {
		info, err := rdb.InfoMap(ctx, "server", "memory").Result()
		mu.Lock()
		defer mu.Unlock()
		addr := rdb.Options().Addr
		if err != nil {
			errs = append(errs, fmt.Errorf("ask %s: %w", addr, err))
			return nil
		}
		errs = append(errs, unfit(addr, info["Server"], info["Memory"]))
		id := info["Server"]["run_id"]
		if other, seen := ids[id]; seen && c.quorum != nil {
			errs = append(errs, fmt.Errorf("%w: %w: %s and %s", ErrUnfit, ErrSameServer, other, addr))
		}
		ids[id] = addr
		return nil
	}
	for _, m := range c.masters {
		switch rdb := m.node.Redis.(type) {
		case *redis.Client:
			_ = check(ctx, rdb) // errors are collected
		case *redis.ClusterClient:
			if err := rdb.ForEachMaster(ctx, check); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check the servers of the lock client: %w", err)
	}
	return nil
}

// unfit is the fault of one server.
func unfit(addr string, server, memory map[string]string) error {
	var errs []error
	if v := server["redis_version"]; older(v, 6, 2) {
		errs = append(errs, fmt.Errorf("%w: %s is Redis %s: use 6.2 or later", ErrUnfit, addr, v))
	}
	policy := memory["maxmemory_policy"]
	if memory["maxmemory"] != "0" && policy != "" && policy != "noeviction" {
		errs = append(errs, fmt.Errorf("%w: %s evicts keys (%s), locks that are held among them: use noeviction",
			ErrUnfit, addr, policy))
	}
	return errors.Join(errs...)
}

// older reports whether a version is before major.minor; an unreadable version is not.
func older(version string, major, minor int) bool {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a < major || a == major && b < minor)
}

// servers is whether the masters of a quorum are known to be different servers.
type servers struct {
	mu    sync.Mutex
	asked bool
	err   error // two are the same
}

// checkServers asks the masters, before the first claim, whether they are different servers. A master that does
// not reply, or does not let this user know, counts as different.
func (q *quorum) checkServers(ctx context.Context, c claim) error {
	q.servers.mu.Lock()
	asked, err := q.servers.asked, q.servers.err
	q.servers.asked = true
	q.servers.mu.Unlock()
	if asked {
		return err
	}
	votes, stop := broadcast(ctx, q, q.bg, q.nodeLimit(c), func(ctx context.Context, i int) (any, error) {
		return q.nodes[i].node.Do(ctx, wire.Call{Script: serverScript, Keys: []string{c.key}})
	})
	defer stop()
	seen := make(map[string]int)
	for range q.nodes {
		v := <-votes
		r, failed := decode(v.value, 0)
		if v.err != nil || failed != nil || len(r.List) == 0 {
			continue
		}
		id := fmt.Sprint(r.List[0])
		if other, same := seen[id]; same {
			err = &requestError{wire.Rejected, fmt.Errorf("%w: masters %d and %d", ErrSameServer, other+1, v.node+1)}
		}
		seen[id] = v.node
	}
	q.servers.mu.Lock()
	defer q.servers.mu.Unlock()
	q.servers.err = err
	return err
}
