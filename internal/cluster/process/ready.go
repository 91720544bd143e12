package process

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/line"
)

// waitReplicas waits until every replica is connected to its master and in sync,
// and its master has received an acknowledgement.
func (c *Cluster) waitReplicas(ctx context.Context) error {
	replicas := map[int]int{} // by master, from 1
	for _, s := range c.nodes {
		m := c.topology.MasterOf(s.I)
		if m == 0 {
			continue
		}
		replicas[m]++
		var role cluster.Role
		err := poll(ctx, func() string {
			var err error
			if role, err = s.role(ctx); err != nil {
				return err.Error()
			}
			if role.Name != "master" && role.Link != "connected" {
				return fmt.Sprintf("%s is %s, link to its master: %s", s.name, role.Name, role.Link)
			}
			return ""
		})
		if err == nil && role.Name == "master" {
			err = fmt.Errorf("%w: %w", cluster.ErrEnvironment, ErrReplaced)
		}
		if err != nil {
			return fmt.Errorf("waiting for %s to attach to its master: %w", s.name, err)
		}
	}
	for m, want := range replicas { // order does not matter: it waits for all
		if err := poll(ctx, func() string { return c.missingAcks(ctx, c.nodes[m-1], want) }); err != nil {
			return err
		}
	}
	return nil
}

// missingAcks describes the acknowledgements that a master lacks, empty if none.
// After a full synchronization it sends a replica nothing until the first one
// (replicaStartCommandStream in Redis' replication.c), but counts it as attached: a
// replica whose acknowledgements are held just then would never get a write. PUBLISH
// is replicated and leaves no key.
func (c *Cluster) missingAcks(ctx context.Context, master *server, want int) string {
	replies, err := master.admin.do(ctx, []string{"PUBLISH", "lockchaos:start", ""},
		[]string{"WAIT", strconv.Itoa(want), strconv.FormatInt(line.Wait.Milliseconds()/2, 10)})
	if err != nil {
		return err.Error()
	}
	if acks, _ := replies[1].(int64); acks < int64(want) {
		return fmt.Sprintf("%s has acknowledgements of %v replicas, want %d", master.name, replies[1], want)
	}
	return ""
}

// waitSentinels waits until every Sentinel sees all servers as healthy. One is not
// enough: a master killed before the others are ready is replaced after nine
// seconds instead of one (measured).
func (c *Cluster) waitSentinels(ctx context.Context) error {
	for _, s := range c.sentinels {
		if err := poll(ctx, func() string { return c.sentinelView(ctx, s) }); err != nil {
			return fmt.Errorf("waiting for Sentinel %s: %w", s.name, err)
		}
	}
	return nil
}

// ErrReplaced: the topology has changed since the start.
var ErrReplaced = errors.New("a master was replaced before all servers were ready, because it did not reply in time: " +
	"this machine is too busy")

// checkMaster checks that n1 is still the master. On a machine that hangs for
// Topology.DownAfter while the cluster starts, it may not be.
func (c *Cluster) checkMaster(ctx context.Context) error {
	var n1 cluster.Role
	err := poll(ctx, func() string {
		var err error
		if n1, err = c.nodes[0].role(ctx); err != nil {
			return err.Error()
		}
		return ""
	})
	if err == nil && n1.Name != "master" {
		return fmt.Errorf("%w: %w", cluster.ErrEnvironment, ErrReplaced)
	}
	return err
}

// settledMS is for how long every Sentinel must have seen the master as one, in
// milliseconds by its own count. Within the first second it may not reconnect, and a
// master that is killed then is replaced after 1.8 s instead of 0.8 s (measured).
const settledMS = 1100

// sentinelView describes the servers that Sentinel s does not see yet, empty if it sees all.
func (c *Cluster) sentinelView(ctx context.Context, s *server) string {
	replies, err := s.admin.do(ctx, []string{"SENTINEL", "MASTER", masterName},
		[]string{"SENTINEL", "REPLICAS", masterName}, []string{"SENTINEL", "SENTINELS", masterName})
	if err != nil {
		return err.Error()
	}
	// flags also has "disconnected", "s_down" etc. while they apply.
	master := cluster.Fields(replies[0])
	if master["flags"] != "master" {
		return fmt.Sprintf("%s sees the master as %q", s.name, master["flags"])
	}
	if ms, _ := strconv.Atoi(master["role-reported-time"]); ms < settledMS {
		return fmt.Sprintf("%s has known the master's role for %d ms, of %d", s.name, ms, settledMS)
	}
	healthy := func(list any, flags string, also ...string) int {
		n := 0
		items, _ := list.([]any)
		for _, item := range items {
			f := cluster.Fields(item)
			if f["flags"] == flags && (len(also) == 0 || f[also[0]] == also[1]) {
				n++
			}
		}
		return n
	}
	replicas := healthy(replies[1], "slave", "master-link-status", "ok")
	others := healthy(replies[2], "sentinel")
	if replicas != len(c.nodes)-1 || others != len(c.sentinels)-1 {
		return fmt.Sprintf("%s sees %d of %d replicas and %d of %d other Sentinels as healthy",
			s.name, replicas, len(c.nodes)-1, others, len(c.sentinels)-1)
	}
	return ""
}

func (s *server) role(ctx context.Context) (cluster.Role, error) {
	replies, err := s.admin.do(ctx, []string{"ROLE"})
	if err != nil {
		return cluster.Role{}, err
	}
	return cluster.ParseRole(replies[0])
}

// poll waits until missing returns nothing; the error has its last result.
func poll(ctx context.Context, missing func() string) error {
	last := ""
	for {
		now := missing()
		if now == "" {
			return nil
		}
		if last == "" || ctx.Err() == nil { // a command that the end of ctx interrupted has no result
			last = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %s", cluster.ErrEnvironment, ctx.Err(), strings.TrimSpace(last))
		case <-time.After(pollEvery):
		}
	}
}
