package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// How long a start may take, and how often it is polled, in virtual time.
const (
	readyWait  = time.Minute
	readyEvery = 10 * time.Millisecond

	// settledMS is how long every Sentinel must have seen the master in its role: a master that dies in its first
	// second is replaced a second later than otherwise, on real servers too.
	settledMS = 1100
)

// build makes the hosts of the topology, starts them and waits until they are ready.
func (c *Cluster) build(ctx context.Context) error {
	if err := c.checkOptions(); err != nil {
		return err
	}
	for i := range c.topology.Size() {
		if c.topology.Kind == cluster.ZooKeeper {
			c.newMember(i)
		} else {
			c.newNode(i)
		}
	}
	for i := range c.topology.Sentinels {
		c.newSentinel(i)
	}
	c.world.actorNamed("main").Turn()
	c.launch(c.servers())
	if c.members != nil {
		return c.await(ctx, c.unserved)
	}
	if err := c.await(ctx, c.unjoined); err != nil {
		return err
	}
	if err := c.await(ctx, c.unattached); err != nil || len(c.sentinels) == 0 {
		return err
	}
	c.launch(c.world.hosts[len(c.nodes):])
	return c.await(ctx, c.unwatched)
}

// servers are the hosts with data: all but the Sentinels.
func (c *Cluster) servers() []*host { return c.world.hosts[:len(c.nodes)+len(c.members)] }

func (c *Cluster) launch(hosts []*host) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	for _, h := range hosts {
		h.start()
	}
}

// checkOptions refuses options that the simulation would ignore although they change what a lock may rely on.
func (c *Cluster) checkOptions() error {
	for _, name := range slices.Sorted(maps.Keys(c.topology.Options)) {
		value := c.topology.Options[name]
		if err := c.topology.CheckOption(name, value); err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrOption, err)
		}
		why := ""
		switch strings.ToLower(name) {
		case "save":
			if strings.Trim(value, `"'`) != "" {
				why = "snapshots are not simulated; use appendonly, or real servers"
			}
		case "maxmemory":
			if value != "0" {
				why = "memory is not limited in a simulation; use real servers"
			}
		}
		if why != "" {
			return fmt.Errorf("%w: option %s %q: %s", cluster.ErrOption, name, value, why)
		}
	}
	return nil
}

// await polls until missing returns "".
func (c *Cluster) await(ctx context.Context, missing func() string) error {
	for end := c.world.now() + int64(readyWait); ; {
		c.world.mu.Lock()
		what := missing()
		c.world.mu.Unlock()
		switch {
		case what == "":
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %s", ctx.Err(), what)
		case c.world.now() > end:
			return fmt.Errorf("not ready after %v: %s", readyWait, what)
		}
		time.Sleep(readyEvery) // in virtual time; keeps the slot
	}
}

// unserved reports a member of an ensemble that does not serve clients yet, "" if all do.
func (c *Cluster) unserved() string {
	for _, m := range c.members {
		if !m.serving {
			return m.name + " serves no clients"
		}
	}
	return ""
}

// unattached reports a replica that is not attached yet, "" if all are.
func (c *Cluster) unattached() string {
	for _, n := range c.nodes {
		if n.repl.master == "" {
			continue
		}
		if n.linkState() != linkConnected {
			return fmt.Sprintf("%s's link to its master: %s", n.name, n.linkState())
		}
		master := c.world.addresses[n.repl.master].program.(*node)
		if !slices.ContainsFunc(master.online(), func(a *attached) bool { return a.addr == n.addr }) {
			return master.name + " does not know " + n.name
		}
	}
	return ""
}

// unwatched reports what a Sentinel does not see yet, "" if they see everything.
func (c *Cluster) unwatched() string {
	for _, s := range c.sentinels {
		for _, i := range s.all() {
			switch {
			case i.wire == nil || !i.wire.up || i.sdown || i.odown:
				return fmt.Sprintf("%s sees %s as %s", s.name, i.addr, i.flags())
			case i.kind == aMaster && !s.mayStart():
				return s.name + " has begun a failover itself"
			case i.kind == aMaster && (i.infoAt == 0 || s.ms()-i.roleAt < settledMS):
				return fmt.Sprintf("%s has known the master for less than %d ms", s.name, settledMS)
			case i.kind == aReplica && (i.infoAt == 0 || !i.linkUp):
				return fmt.Sprintf("%s does not know whether %s is in sync", s.name, i.addr)
			}
		}
	}
	return ""
}
