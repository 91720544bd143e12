package faults

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/cluster"
	"github.com/lockchaos/lockchaos/history"
)

// Target is a word for whom a fault is aimed at.
type Target string

// The words. Node and Client stand for any name ("n2", "client:3").
const (
	Master  Target = "master"   // who is master now; the first node of a quorum
	Replica Target = "replica"  // the first replica
	Holder  Target = "holder"   // the client that holds the lock, or got it last
	Waiter  Target = "waiter"   // a client that waits for it
	Node    Target = "n1"       // stands for any node name
	Client  Target = "client:0" // stands for any client name
)

var (
	nodeName   = regexp.MustCompile(`^n[1-9][0-9]*$`)
	clientName = regexp.MustCompile(`^client:(0|[1-9][0-9]*)$`)
)

// shape is the catalogue's word for a target as a user wrote it.
func shape(target string) Target {
	switch {
	case nodeName.MatchString(target):
		return Node
	case clientName.MatchString(target):
		return Client
	}
	return Target(target)
}

// Aims says why target is not one of the fault's; "" is its default and always good.
func (s Spec) Aims(target string) error {
	if target == "" || slices.Contains(s.Targets, shape(target)) {
		return nil
	}
	words := make([]string, len(s.Targets))
	for i, t := range s.Targets {
		words[i] = string(t)
	}
	return fmt.Errorf("fault %s cannot be aimed at %q: it takes %s", s.Name, target, strings.Join(words, ", "))
}

// Misses says why a run of topology t with so many clients has no such target;
// "" if it has, or may have when the time comes.
func (s Spec) Misses(target string, t cluster.Topology, clients int) string {
	if target == "" {
		target = string(s.Targets[0])
	}
	number, _ := strconv.Atoi(strings.TrimLeft(target, "client:")) // of n3 or client:3; too great is the greatest
	switch shape(target) {
	case Replica:
		if t.Replicas == 0 {
			return "topology " + t.Kind + " has no replica"
		}
	case Node:
		if number < 1 || number > t.Size() {
			return fmt.Sprintf("there is no node %s: the topology has %d", target, t.Size())
		}
	case Client:
		if number >= clients {
			return fmt.Sprintf("there is no %s: the workload has %d clients, from client:0 on", target, clients)
		}
	}
	return ""
}

// Crowd is what is known of the clients when a target is resolved.
type Crowd interface {
	Holder() (client int, ok bool) // holds the lock now, or was the last to get it
	Waiter() (client int, ok bool)
}

// Resolve turns a target word into a name, at the moment of the injection.
func (s Spec) Resolve(ctx context.Context, c cluster.Cluster, crowd Crowd, target string) (string, error) {
	if target == "" {
		target = string(s.Targets[0])
	}
	switch shape(target) {
	case Master:
		return masterOf(ctx, c)
	case Replica:
		return replicaOf(ctx, c)
	case Holder:
		return clientNamed(crowd.Holder, "holds the lock")
	case Waiter:
		return clientNamed(crowd.Waiter, "waits for the lock")
	case Node:
		for _, n := range c.Nodes() {
			if n.Name == target {
				return target, nil
			}
		}
		return "", fmt.Errorf("there is no node %s: the topology has %d", target, len(c.Nodes()))
	}
	return target, nil
}

func clientNamed(who func() (int, bool), what string) (string, error) {
	if c, ok := who(); ok {
		return fmt.Sprintf("client:%d", c), nil
	}
	return "", fmt.Errorf("no client %s now", what)
}

// masterOf asks the nodes themselves: what Sentinel or a client believes is
// part of what is tested. The first one that says so counts.
func masterOf(ctx context.Context, c cluster.Cluster) (string, error) {
	return withRole(ctx, c, "master")
}

func replicaOf(ctx context.Context, c cluster.Cluster) (string, error) {
	return withRole(ctx, c, "slave")
}

func withRole(ctx context.Context, c cluster.Cluster, role string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rolePatience)
	defer cancel()
	node, _ := await(ctx, "a "+role, func() (string, bool) {
		silent := false
		for _, s := range sampleAll(ctx, c) {
			if s.Up && s.Role == role {
				return s.Node, true
			}
			silent = silent || !s.Up
		}
		return "", !silent
	})
	if node == "" {
		return "", fmt.Errorf("no node says that it is a %s", role)
	}
	return node, nil
}

// rolePatience is how long nodes may take to say what they are: two hundred
// clients that arrive at once keep a server from answering in time, and the
// fault that the scenario is about would not happen.
const rolePatience = 500 * time.Millisecond

func sampleAll(ctx context.Context, c cluster.Cluster) []history.Sample {
	w, ok := c.(cluster.Witness)
	if !ok {
		return nil
	}
	samples := make([]history.Sample, 0, len(c.Nodes()))
	for _, n := range c.Nodes() {
		samples = append(samples, w.Sample(ctx, n.Name, nil))
	}
	return samples
}

// answers says whether node is seen to be up.
func answers(ctx context.Context, c cluster.Cluster, node string) bool {
	w, ok := c.(cluster.Witness)
	return ok && w.Sample(ctx, node, nil).Up
}
