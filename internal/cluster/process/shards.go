package process

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/line"
)

// slots is the number of hash slots (redis.io, Cluster specification).
const slots = 16384

// join makes the nodes one Redis Cluster: it assigns slots and epochs, makes every
// node meet the first one, and attaches replicas when they know their master. It
// returns when every node reports a healthy cluster. No fault makes a node hang so early, so that a reply which takes
// long comes from a busy machine.
func (c *Cluster) join(ctx context.Context) error {
	for _, s := range c.nodes {
		s.admin.Wait = startWait
		defer func() { s.admin.Wait = line.Wait }()
	}
	masters := c.topology.MasterCount()
	for i, s := range c.nodes {
		commands := [][]string{{"CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i + 1)}}
		if i < masters {
			commands = append(commands, []string{"CLUSTER", "ADDSLOTSRANGE",
				fmt.Sprint(slots * i / masters), fmt.Sprint(slots*(i+1)/masters - 1)})
		}
		if i > 0 {
			commands = append(commands, meet(c.nodes[0]))
		}
		if err := s.execute(ctx, commands...); err != nil {
			return fmt.Errorf("joining the cluster: %w", err)
		}
	}
	ids, err := c.waitHandshakes(ctx)
	if err != nil {
		return err
	}
	for _, s := range c.nodes[masters:] {
		id := ids[c.topology.MasterOf(s.I)-1]
		if err := s.execute(ctx, []string{"CLUSTER", "REPLICATE", id}); err != nil {
			return fmt.Errorf("joining the cluster: %w", err)
		}
	}
	return c.waitJoined(ctx)
}

// meet is the command that makes a node of the cluster meet s.
func meet(s *server) []string {
	at := s.location
	return []string{"CLUSTER", "MEET", at.Gate.Addr().String(), fmt.Sprint(at.Gate.Port()), fmt.Sprint(at.BusGate.Port())}
}

// execute sends commands and checks that each reply is OK.
func (s *server) execute(ctx context.Context, commands ...[]string) error {
	replies, err := s.admin.do(ctx, commands...)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for i, reply := range replies {
		if reply != "OK" {
			return fmt.Errorf("%s on %s: %v", strings.Join(commands[i], " "), s.name, reply)
		}
	}
	return nil
}

// meetEvery is how often a node that does not know all others meets them again. A node forgets a handshake that takes
// longer than cluster-node-timeout, at least one second (clusterCron in Redis' cluster.c), and does not repeat it. A
// machine that hangs for longer during the start would leave nodes that never know each other.
const meetEvery = 2 * time.Second

// waitHandshakes waits until every node has completed its handshake with every other
// one, and returns the node IDs in order.
func (c *Cluster) waitHandshakes(ctx context.Context) ([]string, error) {
	ids := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		met := time.Now()
		err := poll(ctx, func() string {
			if time.Since(met) >= meetEvery {
				if err := s.execute(ctx, c.meetOthers(s)...); err != nil {
					return err.Error()
				}
				met = time.Now()
			}
			replies, err := s.admin.do(ctx, []string{"CLUSTER", "MYID"}, []string{"CLUSTER", "NODES"})
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
			return nil, fmt.Errorf("waiting for the handshakes of %s: %w", s.name, err)
		}
	}
	return ids, nil
}

// meetOthers are the commands that make s meet every other node. Nodes that it knows stay as they are.
func (c *Cluster) meetOthers(s *server) (commands [][]string) {
	for _, other := range c.nodes {
		if other != s {
			commands = append(commands, meet(other))
		}
	}
	return commands
}

// waitJoined waits until every node sees a healthy cluster, with every replica in its
// role: a master that is killed before the others know its replica is not replaced.
func (c *Cluster) waitJoined(ctx context.Context) error {
	want := c.topology.MasterCount()
	for _, s := range c.nodes {
		err := poll(ctx, func() string {
			replies, err := s.admin.do(ctx, []string{"CLUSTER", "INFO"}, []string{"CLUSTER", "NODES"})
			if err != nil {
				return err.Error()
			}
			info, _ := replies[0].(string)
			nodes, _ := replies[1].(string)
			masters, replicas := countRoles(nodes)
			switch {
			case !strings.Contains(info, "cluster_state:ok"):
				return s.name + " does not report cluster_state:ok"
			case masters != want || replicas != len(c.nodes)-want:
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

// countRoles parses CLUSTER NODES: "id addr flags master …", a line for each node.
// Nodes that are failing, or not connected yet, do not count.
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
