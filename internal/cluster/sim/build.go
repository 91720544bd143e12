package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/sentinel"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/zookeeper"
	"github.com/lockchaos/lockchaos/internal/format"
)

// How long a start may take, and how often it is polled, in virtual time.
const (
	readyWait  = time.Minute
	readyEvery = 10 * time.Millisecond
)

// build makes the hosts of the topology, starts them and waits until they are ready.
func (c *Cluster) build(ctx context.Context) error {
	if err := c.checkOptions(); err != nil {
		return err
	}
	if c.topology.Kind == cluster.ZooKeeper {
		c.ensemble = zookeeper.New(c.world, c.topology.Size(), c.topology.Options)
	} else {
		for i := range c.topology.Size() {
			c.newNode(i)
		}
	}
	c.sentinels = sentinel.New(c.world, sentinel.Config{
		Count: c.topology.Sentinels, Quorum: c.topology.SentinelQuorum, DownAfter: c.topology.DownAfter,
		Servers: c.serverAddrs(), Master: masterName, Password: c.config.Password, Version: version,
	})
	c.world.Actor("main").Turn()
	c.launch(c.servers())
	if c.ensemble != nil {
		return c.await(ctx, c.unserved)
	}
	if err := c.await(ctx, c.unjoined); err != nil {
		return err
	}
	if err := c.await(ctx, c.unattached); err != nil || c.topology.Sentinels == 0 {
		return err
	}
	c.launch(c.world.Hosts[len(c.nodes):])
	return c.await(ctx, c.sentinels.NotReady)
}

// servers are the hosts with data: all but the Sentinels.
func (c *Cluster) servers() []*network.Host { return c.world.Hosts[:c.topology.Size()] }

// serverAddrs are the addresses of the servers.
func (c *Cluster) serverAddrs() []string {
	return format.Texts(c.servers(), func(h *network.Host) string { return h.Addr })
}

func (c *Cluster) launch(hosts []*network.Host) {
	c.world.Mu.Lock()
	defer c.world.Mu.Unlock()
	for _, h := range hosts {
		h.Start()
	}
}

// checkOptions refuses options that the simulation would ignore although a lock may rely on them.
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
	for end := c.world.Now() + int64(readyWait); ; {
		c.world.Mu.Lock()
		what := missing()
		c.world.Mu.Unlock()
		switch {
		case what == "":
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %s", ctx.Err(), what)
		case c.world.Now() > end:
			return fmt.Errorf("not ready after %v: %s", readyWait, what)
		}
		time.Sleep(readyEvery) // in virtual time; keeps the slot
	}
}

// unserved reports a member of an ensemble that does not serve clients yet, "" if all do.
func (c *Cluster) unserved() string {
	if name := c.ensemble.NotServing(); name != "" {
		return name + " serves no clients"
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
			return fmt.Sprintf("%s's link to its master: %s", n.Name, n.linkState())
		}
		master := c.world.Addresses[n.repl.master].Program.(*node)
		if !slices.ContainsFunc(master.online(), func(a *attached) bool { return a.addr == n.Addr }) {
			return master.Name + " does not know " + n.Name
		}
	}
	return ""
}
