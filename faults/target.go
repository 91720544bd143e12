package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Target is a word for whom a fault is aimed at.
type Target string

// The words. Node and Client stand for any name ("n2", "client:3"), Pair and
// Servers for two with a > between, of which each may be a word ("holder>n1").
const (
	Master   Target = "master"      // who is master now; the first node of a quorum
	Replica  Target = "replica"     // the first replica
	Behind   Target = "behind"      // the replica that has the least of the master's data
	Deciding Target = "deciding"    // a node of a quorum without which the holder would have no majority
	Minority Target = "minority"    // the greatest part of a quorum's masters that is none, n1 first
	Majority Target = "majority"    // the smallest majority of a quorum's masters, n1 first
	Ring     Target = "ring"        // every node, as long as it talks to others than its neighbours
	Bridge   Target = "bridge"      // two halves of the nodes, and one between that both can reach
	Holder   Target = "holder"      // the client that holds the lock, or got it last
	Waiter   Target = "waiter"      // a client that waits for it
	All      Target = "all"         // every client and node
	Node     Target = "n1"          // stands for any node name
	Client   Target = "client:0"    // stands for any client name
	Nodes    Target = "n1+n2"       // stands for several nodes
	Pair     Target = "client:0>n1" // stands for a client and a server
	Servers  Target = "n2>n1"       // stands for two servers
)

var (
	nodeName   = regexp.MustCompile(`^n[1-9][0-9]*$`)
	nodeNames  = regexp.MustCompile(`^n[1-9][0-9]*(\+n[1-9][0-9]*)+$`)
	clientName = regexp.MustCompile(`^client:(0|[1-9][0-9]*)$`)
)

// shape is the catalogue's word for a target as a user wrote it.
func shape(target string) Target {
	a, b, pair := cutPair(target)
	switch {
	case pair && among(shape(a), Client, Holder, Waiter) && isNode(b):
		return Pair
	case pair && isNode(a) && isNode(b):
		return Servers
	case nodeName.MatchString(target):
		return Node
	case nodeNames.MatchString(target):
		return Nodes
	case clientName.MatchString(target):
		return Client
	}
	return Target(target)
}

func isNode(word string) bool { return among(shape(word), Node, Master, Replica) }

func among(t Target, list ...Target) bool { return slices.Contains(list, t) }

func cutPair(target string) (from, to string, ok bool) { return strings.Cut(target, ">") }

// names are the nodes of a target of several, such as "n1+n2".
func names(target string) []string { return strings.Split(target, "+") }

// Aims says why target is not one of the fault's; "" is its default and always good.
func (s Spec) CheckTarget(target string) error {
	if target == "" || slices.Contains(s.Targets, shape(target)) {
		return nil
	}
	return fmt.Errorf("fault %s cannot be aimed at %q: it takes %s", s.Name, target, strings.Join(s.TargetWords(), ", "))
}

// Words are the targets of s, as users write them.
func (s Spec) TargetWords() []string {
	words := make([]string, len(s.Targets))
	for i, t := range s.Targets {
		words[i] = string(t)
	}
	return words
}

// Misses says why a run of topology t with so many clients has no such target;
// "" if it has, or may have when the time comes.
func (s Spec) MissingTarget(target string, t cluster.Topology, clients int) string {
	target = s.or(target)
	number, _ := strconv.Atoi(strings.TrimLeft(target, "client:")) // of n3 or client:3; too great is the greatest
	switch shape(target) {
	case Pair, Servers:
		a, b, _ := cutPair(target)
		return cmp.Or(s.MissingTarget(a, t, clients), s.MissingTarget(b, t, clients))
	case Nodes:
		for _, node := range names(target) {
			if why := s.MissingTarget(node, t, clients); why != "" {
				return why
			}
		}
	case Replica, Behind:
		if t.Replicas == 0 {
			return "topology " + t.Kind + " has no replica"
		}
	case Deciding, Minority, Majority:
		if t.Kind != cluster.Quorum {
			return fmt.Sprintf("target %s is of topology quorum", target)
		}
	case Ring, Bridge:
		if t.Size() < 4 || t.Kind == cluster.Quorum {
			return fmt.Sprintf("target %s is of four or more nodes that talk to each other", target)
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
type ClientState interface {
	Holder() (client int, ok bool) // holds the lock now, or was the last to get it
	Waiter() (client int, ok bool)
	Keys() []string // names of the locks
}

// Resolve turns a target word into a name, at the moment of the injection.
func (s Spec) Resolve(ctx context.Context, c cluster.Cluster, crowd ClientState, target string) (string, error) {
	target = s.or(target)
	switch shape(target) {
	case Pair, Servers:
		a, b, _ := cutPair(target)
		from, err1 := s.Resolve(ctx, c, crowd, a)
		to, err2 := s.Resolve(ctx, c, crowd, b)
		return from + ">" + to, errors.Join(err1, err2)
	case Master:
		return masterOf(ctx, c)
	case Replica:
		return replicaOf(ctx, c)
	case Behind:
		return behind(ctx, c)
	case Deciding:
		return deciding(ctx, c, crowd)
	case Minority:
		return some(c, (c.Topology().MasterCount()-1)/2), nil
	case Majority:
		return some(c, c.Topology().MasterCount()/2+1), nil
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

// nodeNumber is the name of node i, from 1.
func nodeNumber(i int) string { return fmt.Sprintf("n%d", i) }

// some is the first n nodes, as one target.
func some(c cluster.Cluster, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = c.Nodes()[i].Name
	}
	return strings.Join(all, "+")
}

// behind is the replica that has the least: the lowest offset of those that say one.
func behind(ctx context.Context, c cluster.Cluster) (string, error) {
	node, least := "", int64(math.MaxInt64)
	for _, s := range sampleAll(ctx, c) {
		if s.Up && s.Role == "slave" && s.Offset < least {
			node, least = s.Node, s.Offset
		}
	}
	if node == "" {
		return "", errors.New("no node says that it is a replica")
	}
	return node, nil
}

// deciding is the first of the masters that have the holder's key, of which
// there must be no more than a majority: with more, none of them decides.
func deciding(ctx context.Context, c cluster.Cluster, crowd ClientState) (string, error) {
	w, ok := c.(cluster.Witness)
	if !ok {
		return "", errors.New("nobody can look at the nodes")
	}
	have := map[string][]string{} // nodes, by owner
	majority := c.Topology().MasterCount()/2 + 1
	for _, n := range c.Nodes() {
		for key, seen := range w.Sample(ctx, n.Name, crowd.Keys()).Keys { // order does not matter: one owner for each
			id := key + " " + seen.Owner
			have[id] = append(have[id], n.Name)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(have)) {
		if len(have[id]) == majority {
			return have[id][0], nil
		}
	}
	return "", errors.New("no lock is held by exactly a majority, so no node decides")
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
