package process

import (
	"context"
	"fmt"
	"strings"
)

// slots is how many hash slots a cluster has (redis.io, Cluster specification).
const slots = 16384

// join makes one cluster of the nodes: slots and epochs by hand, everybody
// introduced to the first, replicas attached when they know their master. It
// returns when every node says that all is well.
func (c *Cluster) join(ctx context.Context) error {
	heads := c.topology.MasterCount()
	for i, s := range c.nodes {
		commands := [][]string{{"CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i + 1)}}
		if i < heads {
			commands = append(commands, []string{"CLUSTER", "ADDSLOTSRANGE",
				fmt.Sprint(slots * i / heads), fmt.Sprint(slots*(i+1)/heads - 1)})
		}
		if i > 0 {
			first := c.nodes[0].location
			commands = append(commands, []string{"CLUSTER", "MEET", first.Gate.Addr().String(),
				fmt.Sprint(first.Gate.Port()), fmt.Sprint(first.BusGate.Port())})
		}
		if err := s.order(ctx, commands...); err != nil {
			return fmt.Errorf("joining the cluster: %w", err)
		}
	}
	ids, err := c.waitKnown(ctx)
	if err != nil {
		return err
	}
	for _, s := range c.nodes[heads:] {
		id := ids[c.topology.MasterOf(s.I)-1]
		if err := s.order(ctx, []string{"CLUSTER", "REPLICATE", id}); err != nil {
			return fmt.Errorf("joining the cluster: %w", err)
		}
	}
	return c.waitJoined(ctx)
}

// order sends commands that answer OK if they are carried out.
func (s *server) order(ctx context.Context, commands ...[]string) error {
	replies, err := s.admin.ask(ctx, commands...)
	if err != nil {
		return fmt.Errorf("ordering %s: %w", s.name, err)
	}
	for i, reply := range replies {
		if reply != "OK" {
			return fmt.Errorf("ordering %s to %s: %v", s.name, strings.Join(commands[i], " "), reply)
		}
	}
	return nil
}

// waitKnown waits until every node knows every other one by its own name, and
// returns these names in the order of the nodes.
func (c *Cluster) waitKnown(ctx context.Context) ([]string, error) {
	ids := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		err := poll(ctx, func() string {
			replies, err := s.admin.ask(ctx, []string{"CLUSTER", "MYID"}, []string{"CLUSTER", "NODES"})
			if err != nil {
				return err.Error()
			}
			ids[i], _ = replies[0].(string)
			text, _ := replies[1].(string)
			known := strings.Count(text, "\n") - strings.Count(text, "handshake")
			if known < len(c.nodes) {
				return fmt.Sprintf("%s knows %d of %d nodes", s.name, known, len(c.nodes))
			}
			return ""
		})
		if err != nil {
			return nil, fmt.Errorf("waiting for %s to know the cluster: %w", s.name, err)
		}
	}
	return ids, nil
}

// waitJoined waits until every node sees a whole cluster, with every replica in
// its role: a master that dies before the others know its replica is not replaced.
func (c *Cluster) waitJoined(ctx context.Context) error {
	heads := c.topology.MasterCount()
	for _, s := range c.nodes {
		err := poll(ctx, func() string {
			replies, err := s.admin.ask(ctx, []string{"CLUSTER", "INFO"}, []string{"CLUSTER", "NODES"})
			if err != nil {
				return err.Error()
			}
			info, _ := replies[0].(string)
			nodes, _ := replies[1].(string)
			masters, replicas := countRoles(nodes)
			switch {
			case !strings.Contains(info, "cluster_state:ok"):
				return s.name + " says that the cluster is not well"
			case masters != heads || replicas != len(c.nodes)-heads:
				return fmt.Sprintf("%s sees %d masters and %d replicas", s.name, masters, replicas)
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to see the whole cluster: %w", s.name, err)
		}
	}
	return nil
}

// countRoles reads CLUSTER NODES: "id addr flags master …", a line for each node.
// Nodes that are failing, or not reached yet, do not count.
func countRoles(text string) (masters, replicas int) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 || strings.Contains(words[2], "fail") || words[7] != "connected" {
			continue
		}
		switch flags := strings.TrimPrefix(words[2], "myself,"); flags {
		case "master":
			masters++
		case "slave":
			replicas++
		}
	}
	return masters, replicas
}
