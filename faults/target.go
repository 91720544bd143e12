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

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Target is a kind of target, named by the word or by an example that users write.
type Target string

// The kinds. Node and Client stand for any name ("n2", "client:3"), Pair and Servers for two ends with a > between
// them, each of which may be a word ("holder>n1").
const (
	Master   Target = "master"      // the node that is master or leader now; the first node of a quorum
	Replica  Target = "replica"     // the first replica or follower
	Behind   Target = "behind"      // the replica with the lowest replication offset
	Deciding Target = "deciding"    // a node of a quorum without which the holder has no majority
	Minority Target = "minority"    // the largest minority of a quorum's masters or an ensemble's members, n1 first
	Majority Target = "majority"    // the smallest majority of a quorum's masters or an ensemble's members, n1 first
	Ring     Target = "ring"        // all nodes, each of which reaches its two neighbors only
	Bridge   Target = "bridge"      // two halves of the nodes, and one node that reaches both
	Holder   Target = "holder"      // the client that holds the lock, or held it last
	Waiter   Target = "waiter"      // a client that waits for the lock
	All      Target = "all"         // all clients and nodes
	Node     Target = "n1"          // any node name
	Client   Target = "client:0"    // any client name
	Nodes    Target = "n1+n2"       // several nodes
	Pair     Target = "client:0>n1" // a client and a server
	Servers  Target = "n2>n1"       // two servers
	Watch    Target = "s1>n1"       // a Sentinel and a server, or two Sentinels
)

var (
	nodePattern   = regexp.MustCompile(`^n[1-9][0-9]*$`)
	nodesPattern  = regexp.MustCompile(`^n[1-9][0-9]*(\+n[1-9][0-9]*)+$`)
	watchPattern  = regexp.MustCompile(`^s[1-9][0-9]*$`) // a Sentinel
	clientPattern = regexp.MustCompile(`^client:(0|[1-9][0-9]*)$`)
)

// shape is the kind of a target as a user wrote it. An ensemble's words leader and follower are master and replica.
func shape(target string) Target {
	a, b, pair := cutPair(target)
	switch {
	case target == "leader":
		return Master
	case target == "follower":
		return Replica
	case pair && slices.Contains([]Target{Client, Holder, Waiter}, shape(a)) && isNode(b):
		return Pair
	case pair && isNode(a) && isNode(b):
		return Servers
	case pair && isSentinel(a) && (isNode(b) || isSentinel(b)):
		return Watch
	case nodePattern.MatchString(target):
		return Node
	case nodesPattern.MatchString(target):
		return Nodes
	case clientPattern.MatchString(target):
		return Client
	}
	return Target(target)
}

func isNode(word string) bool { return slices.Contains([]Target{Node, Master, Replica}, shape(word)) }

func isSentinel(word string) bool { return watchPattern.MatchString(word) }

func cutPair(target string) (from, to string, ok bool) { return strings.Cut(target, ">") }

// nodesOf are the nodes of a target of one or several, such as "n1+n2".
func nodesOf(target string) []string { return strings.Split(target, "+") }

// nodeName is the name of node i, from 1.
func nodeName(i int) string { return fmt.Sprintf("n%d", i) }

// firstNodes is the first n nodes, as one target.
func firstNodes(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = nodeName(i + 1)
	}
	return strings.Join(names, "+")
}

// numberIn is the number in the name of a node or client. One that is too large for an int becomes the largest int.
func numberIn(name string) int {
	digits, client := strings.CutPrefix(name, "client:")
	if !client {
		digits = strings.TrimPrefix(name, "n")
	}
	n, _ := strconv.Atoi(digits)
	return n
}

// CheckTarget refuses a target of a kind that the fault does not take; "" stands for the default.
func (s Spec) CheckTarget(target string) error {
	if target == "" || slices.Contains(s.Targets, shape(target)) {
		return nil
	}
	return fmt.Errorf("fault %s cannot target %q; use %s", s.Name, target, strings.Join(s.TargetWords(), ", "))
}

// TargetWords are the targets of s, as users write them.
func (s Spec) TargetWords() []string {
	return format.Texts(s.Targets, func(t Target) Target { return t })
}

// orDefault is target, or the default of s.
func (s Spec) orDefault(target string) string { return cmp.Or(target, string(s.Targets[0])) }

// MissingTarget returns why a run of topology t with so many clients has no such target; "" if it has, or may have one
// later.
func (s Spec) MissingTarget(target string, t cluster.Topology, clients int) string {
	target = s.orDefault(target)
	switch shape(target) {
	case Pair, Servers, Watch:
		a, b, _ := cutPair(target)
		return cmp.Or(s.missingEnd(a, t, clients), s.missingEnd(b, t, clients))
	case Nodes:
		for _, node := range nodesOf(target) {
			if why := s.MissingTarget(node, t, clients); why != "" {
				return why
			}
		}
	case Master, Replica, Behind:
		if why := missingRole(shape(target), t); why != "" {
			return why
		}
	case Minority, Majority:
		if t.Voters() == 0 {
			return fmt.Sprintf("target %s needs topology quorum, zookeeper or etcd", target)
		}
	case Deciding:
		if t.Kind != cluster.Quorum {
			return fmt.Sprintf("target %s needs topology quorum", target)
		}
	case Ring, Bridge:
		if t.Size() < 4 || t.Kind == cluster.Quorum {
			return fmt.Sprintf("target %s needs four or more nodes that are connected to each other", target)
		}
	case Node:
		if n := numberIn(target); n < 1 || n > t.Size() {
			return fmt.Sprintf("node %s does not exist: the topology has %s", target, format.Count(t.Size(), "node"))
		}
	case Client:
		if numberIn(target) >= clients {
			return fmt.Sprintf("%s does not exist: the workload has %s, counted from client:0",
				target, format.Count(clients, "client"))
		}
	}
	return ""
}

// missingRole is why no server of t has the role that a target names; "" if one has it.
func missingRole(target Target, t cluster.Topology) string {
	switch {
	case target != Master && (t.Size() == 1 || t.Replicas == 0 && t.Redis()):
		return "topology " + t.Kind + " has no replica"
	case t.Kind == cluster.Command && t.Size() > 1 && t.Role == nil:
		return fmt.Sprintf("target %s needs topology.role, a program that prints the role of a server; or name a server, "+
			"such as n1", target)
	}
	return ""
}

// missingEnd is MissingTarget of one end of a pair, which may be a Sentinel.
func (s Spec) missingEnd(end string, t cluster.Topology, clients int) string {
	if !isSentinel(end) {
		return s.MissingTarget(end, t, clients)
	}
	n, err := strconv.Atoi(end[1:])
	if err != nil || n > t.Sentinels {
		return fmt.Sprintf("Sentinel %s does not exist: the topology has %s", end, format.Count(t.Sentinels, "Sentinel"))
	}
	return ""
}

// ClientState is the present state of the clients, as far as it is known.
type ClientState interface {
	Holder() (client int, ok bool) // holds the lock now, or was the last to hold it
	Waiter() (client int, ok bool)
	Acquiring(client int) (r cluster.Acquire, ok bool)
	Keys() []string // names of the locks
}

// Resolve turns a planned target into a name at the moment of the injection.
func Resolve(ctx context.Context, c cluster.Cluster, clients ClientState, target string) (string, error) {
	switch shape(target) {
	case Pair, Servers, Watch:
		a, b, _ := cutPair(target)
		from, err1 := Resolve(ctx, c, clients, a)
		to, err2 := Resolve(ctx, c, clients, b)
		return from + ">" + to, errors.Join(err1, err2)
	case Master:
		return nodeInRole(ctx, c, roleMaster)
	case Replica:
		return nodeInRole(ctx, c, roleReplica)
	case Behind:
		return behind(ctx, c)
	case Deciding:
		return deciding(ctx, c, clients)
	case Holder:
		return clientNamed(clients.Holder, "holds the lock")
	case Waiter:
		return clientNamed(clients.Waiter, "waits for the lock")
	}
	return target, nil
}

func clientNamed(who func() (int, bool), what string) (string, error) {
	if c, ok := who(); ok {
		return fmt.Sprintf("client:%d", c), nil
	}
	return "", fmt.Errorf("no client %s now", what)
}

// behind is the replica with the lowest replication offset.
func behind(ctx context.Context, c cluster.Cluster) (string, error) {
	node, lowest := "", int64(math.MaxInt64)
	for _, s := range sampleAll(ctx, c) {
		if s.Up && s.Role == roleReplica && s.Offset < lowest {
			node, lowest = s.Node, s.Offset
		}
	}
	if node == "" {
		return "", errors.New("no node reports that it is a replica")
	}
	return node, nil
}

// deciding is the first of the masters that have the holder's key, of which there must be exactly a majority: with
// more, no single master decides.
func deciding(ctx context.Context, c cluster.Cluster, clients ClientState) (string, error) {
	w, ok := c.(cluster.Witness)
	if !ok {
		return "", errors.New("this backend cannot sample nodes")
	}
	nodes := map[string][]string{} // by key and owner
	for _, n := range c.Nodes() {
		for key, seen := range w.Sample(ctx, n.Name, clients.Keys()).Keys { // in any order: one owner for each key
			hold := key + " " + seen.Owner
			nodes[hold] = append(nodes[hold], n.Name)
		}
	}
	majority := c.Topology().MasterCount()/2 + 1
	for _, hold := range slices.Sorted(maps.Keys(nodes)) {
		if len(nodes[hold]) == majority {
			return nodes[hold][0], nil
		}
	}
	return "", errors.New("no lock is held by exactly a majority, so no node is deciding")
}

// roleLimit bounds the wait for the nodes' roles: two hundred clients that arrive at once keep a server from replying
// in time, and the scenario's fault would not be injected.
const roleLimit = 500 * time.Millisecond

// nodeInRole is the first node that reports that role. Nodes that do not reply are asked again.
func nodeInRole(ctx context.Context, c cluster.Cluster, role string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, roleLimit)
	defer cancel()
	node, _ := await(ctx, "a "+role, func() (string, bool) {
		allUp := true
		for _, s := range sampleAll(ctx, c) {
			if s.Up && s.Role == role {
				return s.Node, true
			}
			allUp = allUp && s.Up
		}
		return "", allUp
	})
	if node == "" {
		return "", fmt.Errorf("no node reports the role of %s", role)
	}
	return node, nil
}
