package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// waitAttached waits until every replica is connected to its master and has its
// data, and every master has heard from it.
func (c *Cluster) waitAttached(ctx context.Context) error {
	replicas := map[int]int{} // by master, from 1
	for _, s := range c.nodes {
		m := c.topology.MasterOf(s.I)
		if m == 0 {
			continue
		}
		replicas[m]++
		err := poll(ctx, func() string {
			role, err := s.role(ctx)
			if err != nil {
				return err.Error()
			}
			if role.link != "connected" {
				return fmt.Sprintf("%s is %s, link to its master: %s", s.name, role.name, role.link)
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to attach to its master: %w", s.name, err)
		}
	}
	for m, want := range replicas { // order does not matter: all are waited for
		if err := poll(ctx, func() string { return c.unheard(ctx, c.nodes[m-1], want) }); err != nil {
			return err
		}
	}
	return nil
}

// unheard says how many of its replicas a master has not heard from, empty if it has
// from all. After a full synchronization it sends them nothing until their first
// acknowledgement (replicaStartCommandStream in Redis' replication.c), and
// counts them as attached all the same: one whose acknowledgements are held just then
// would never get a write. So something is sent that leaves nothing, and waited for.
func (c *Cluster) unheard(ctx context.Context, master *server, want int) string {
	replies, err := master.admin.ask(ctx, []string{"PUBLISH", "lockchaos:start", "heard?"},
		[]string{"WAIT", strconv.Itoa(want), strconv.FormatInt(askWait.Milliseconds()/2, 10)})
	if err != nil {
		return err.Error()
	}
	if heard, _ := replies[1].(int64); heard < int64(want) {
		return fmt.Sprintf("%s has heard from %v replicas, want %d", master.name, replies[1], want)
	}
	return ""
}

// waitWatched waits until every Sentinel sees everything in good health. To ask
// only one is not enough: a master killed when the others are not ready yet is
// replaced after nine seconds instead of one (measured).
func (c *Cluster) waitWatched(ctx context.Context) error {
	for _, s := range c.sentinels {
		if err := poll(ctx, func() string { return c.unwatched(ctx, s) }); err != nil {
			return fmt.Errorf("waiting for Sentinel %s: %w", s.name, err)
		}
	}
	return nil
}

// ErrReplaced says that the topology is not the one asked for any more.
var ErrReplaced = errors.New("the Sentinels have replaced the first master already, which did not answer in time: " +
	"this machine is too busy")

// unreplaced checks that n1 is the master still. On a machine that stands still
// for downAfterMS while the cluster starts, it may not be.
func (c *Cluster) unreplaced(ctx context.Context) error {
	var n1 role
	err := poll(ctx, func() string {
		var err error
		n1, err = c.nodes[0].role(ctx)
		return message(err)
	})
	if err == nil && n1.name != "master" {
		return fmt.Errorf("%w: %w", cluster.ErrEnvironment, ErrReplaced)
	}
	return err
}

// settledMS is for how long every Sentinel has to know that the master is one, in
// milliseconds by its own count. In the first second it may not connect again yet, and a
// master that dies then is replaced after 1.8 s instead of 0.8 s (measured).
const settledMS = 1100

// unwatched says what Sentinel s does not see yet, empty if it sees all.
func (c *Cluster) unwatched(ctx context.Context, s *server) string {
	replies, err := s.admin.ask(ctx, []string{"SENTINEL", "MASTER", MasterName},
		[]string{"SENTINEL", "REPLICAS", MasterName}, []string{"SENTINEL", "SENTINELS", MasterName})
	if err != nil {
		return err.Error()
	}
	// "disconnected", "s_down" and the like appear in flags as long as they are so.
	master := fields(replies[0])
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
			f := fields(item)
			if f["flags"] == flags && (len(also) == 0 || f[also[0]] == also[1]) {
				n++
			}
		}
		return n
	}
	replicas := healthy(replies[1], "slave", "master-link-status", "ok")
	others := healthy(replies[2], "sentinel")
	if replicas != len(c.nodes)-1 || others != len(c.sentinels)-1 {
		return fmt.Sprintf("%s sees %d of %d replicas and %d of %d other Sentinels in good health",
			s.name, replicas, len(c.nodes)-1, others, len(c.sentinels)-1)
	}
	return ""
}

// role is what ROLE answers.
type role struct {
	name   string // "master" or "slave"
	offset int64  // of replication
	links  int    // master: replicas attached
	link   string // replica: state of the link to its master
}

func (s *server) role(ctx context.Context) (role, error) {
	replies, err := s.admin.ask(ctx, []string{"ROLE"})
	if err != nil {
		return role{}, err
	}
	return parseRole(replies[0])
}

// parseRole reads the answer to ROLE:
// "master", offset, replicas - or "slave", host, port, state, offset.
func parseRole(reply any) (role, error) {
	if err, ok := reply.(replyError); ok {
		return role{}, err
	}
	items, _ := reply.([]any)
	if len(items) == 3 && items[0] == "master" {
		offset, _ := items[1].(int64)
		replicas, _ := items[2].([]any)
		return role{name: "master", offset: offset, links: len(replicas)}, nil
	}
	if len(items) == 5 && items[0] == "slave" {
		link, _ := items[3].(string)
		offset, _ := items[4].(int64)
		return role{name: "slave", offset: offset, link: link}, nil
	}
	return role{}, fmt.Errorf("reading %v as a role: %w", reply, errProtocol)
}

// fields turns a flat list of names and values into a map.
func fields(reply any) map[string]string {
	items, _ := reply.([]any)
	m := make(map[string]string, len(items)/2)
	for pair := range slices.Chunk(items, 2) {
		if len(pair) == 2 {
			m[fmt.Sprint(pair[0])] = fmt.Sprint(pair[1])
		}
	}
	return m
}

// poll waits until missing answers nothing; the error says what was missing at the end.
func poll(ctx context.Context, missing func() string) error {
	last := ""
	for {
		now := missing()
		if now == "" {
			return nil
		}
		if last == "" || ctx.Err() == nil { // a question that the end of ctx cut short tells nothing
			last = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %s", cluster.ErrEnvironment, ctx.Err(), strings.TrimSpace(last))
		case <-time.After(pollEvery):
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
