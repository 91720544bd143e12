package sim_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// shardedServers has the methods of a Redis Cluster that the events need, simulated or real.
type shardedServers interface {
	cluster.Cluster
	cluster.Admin
	cluster.Killer
	cluster.Links
}

// observer polls the nodes of a Redis Cluster.
type observer struct {
	c         shardedServers
	ctx       context.Context
	ids       map[string]string // of the nodes, by name
	names     *strings.Replacer // ids to names
	restarted string            // a node that was down, or apart, until the event
	apart     string            // a node from which the others are disconnected
	views
}

const restart = "restart of a master"

func newObserver(ctx context.Context, c shardedServers) *observer {
	o := &observer{c: c, ctx: ctx, ids: map[string]string{}, views: newViews()}
	var pairs []string
	for _, n := range c.Nodes() {
		o.ids[n.Name] = o.text(n.Name, "MYID")
		pairs = append(pairs, o.ids[n.Name], n.Name)
	}
	o.names = strings.NewReplacer(pairs...)
	return o
}

// text is the reply of a node to CLUSTER and a subcommand; empty if the node does not reply.
func (o *observer) text(node, sub string) string {
	reply, err := o.c.Do(o.ctx, node, "CLUSTER", sub)
	if err != nil {
		return ""
	}
	text, _ := reply.(string)
	return text
}

// view is the report of a node: of every node role, failure flag, configuration epoch and slots, and its own state and
// epoch. CLUSTER NODES is read again until CLUSTER INFO certainly belongs to it. nil: the node does not reply.
func (o *observer) view(node string) map[string]string {
	nodes := o.parseNodes(o.text(node, "NODES"))
	for nodes != nil {
		info := o.text(node, "INFO")
		again := o.parseNodes(o.text(node, "NODES"))
		if !maps.Equal(nodes, again) {
			nodes = again
			continue
		}
		for line := range strings.Lines(info) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch name {
			case "cluster_state":
				nodes["state"] = value
			case "cluster_current_epoch":
				nodes["epoch"] = value
			case "cluster_my_epoch":
				nodes["own epoch"] = value
			}
		}
		return nodes
	}
	return nil
}

// parseNodes reads CLUSTER NODES: id, address, flags, master, ping, pong, epoch, link, slots.
func (o *observer) parseNodes(text string) map[string]string {
	if text == "" {
		return nil
	}
	view := map[string]string{}
	for line := range strings.Lines(o.names.Replace(text)) {
		words := strings.Fields(line)
		name, flags := words[0], strings.Split(words[2], ",")
		role, failure := "?", "none"
		for _, flag := range flags {
			switch flag {
			case "master":
				role = "master"
			case "slave":
				role = "replica of " + words[3]
			case "fail", "fail?":
				failure = flag
			}
		}
		view[name], view[name+" failure"], view[name+" config"] = role, failure, words[6]
		view[name+" slots"] = strings.Join(slices.DeleteFunc(words[8:], func(word string) bool {
			return strings.HasPrefix(word, "[") // open slots, which only the node itself names
		}), " ")
	}
	return view
}

// disturbed reports whether nodes that can reach each other report a failure: the machine was too busy to run all of
// them for as long as cluster-node-timeout.
func (o *observer) disturbed(*recorded) bool {
	excused := func(node string) bool { return node == o.apart || node == o.restarted }
	for node, view := range o.now {
		for other := range o.now {
			if !excused(node) && !excused(other) && view[other+" failure"] != "none" {
				return true
			}
		}
	}
	return false
}

// poll reads the view of every node, and appends the changes to r.
func (o *observer) poll(r *recorded, ms int64) {
	for _, n := range o.c.Nodes() {
		o.update(r, ms, n.Name, o.view(n.Name), func(field string) bool {
			return r.Event == restart && n.Name == o.restarted && field == "state" // it depends on how fast a process starts
		})
	}
}

// settled reports whether all nodes that reply agree, and every replica is attached to its master. Then r has the
// common view.
func (o *observer) settled(r *recorded) bool {
	agreed := ""
	for _, n := range o.c.Nodes() {
		view := maps.Clone(o.now[n.Name])
		if view == nil || n.Name == o.apart {
			continue
		}
		reply, err := o.c.Do(o.ctx, n.Name, "ROLE")
		role, err2 := cluster.ParseRole(reply)
		if err != nil || err2 != nil || role.Name == "slave" && role.Link != "connected" {
			return false
		}
		delete(view, "own epoch")
		if text := fmt.Sprint(view); agreed == "" {
			agreed, r.End = text, view
		} else if agreed != text {
			return false
		}
	}
	return agreed != ""
}

// all reports whether every node that replies has a value in its view.
func (o *observer) all(what ...string) bool {
	for node, view := range o.now {
		if node == o.apart {
			if view["state"] != "fail" {
				return false
			}
			continue
		}
		for _, w := range what {
			field, value, _ := strings.Cut(w, "=")
			if view[field] != value {
				return false
			}
		}
	}
	return true
}

// address is "host port" of a node.
func (o *observer) address(node string) string {
	for _, n := range o.c.Nodes() {
		if n.Name == node {
			return strings.Replace(n.Addr, ":", " ", 1)
		}
	}
	return ""
}

// partition drops, or passes again, everything between a node and the others.
func (o *observer) partition(node string, mode cluster.Mode) error {
	var errs []error
	for _, n := range o.c.Nodes() {
		if n.Name == node {
			continue
		}
		for _, link := range []cluster.Link{{From: node, To: n.Name}, {From: n.Name, To: node}} {
			errs = append(errs, o.c.SetRule(link, cluster.Both, cluster.Rule{Mode: mode}))
		}
	}
	return errors.Join(errs...)
}

// commands sends commands, each "n1 CLUSTER MYID"; the word _ is empty.
func (o *observer) commands(lines ...string) error {
	for _, line := range lines {
		node, words, _ := strings.Cut(line, " ")
		var args []any
		for _, word := range strings.Fields(words) {
			args = append(args, strings.TrimPrefix(word, "_"))
		}
		if _, err := o.c.Do(o.ctx, node, args...); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// events are done one after the other, to a cluster of three masters, n1 to n3, and a replica of each, n4 to n6.
func (o *observer) events() []event {
	send := func(lines ...string) func() error { return func() error { return o.commands(lines...) } }
	n1, n2, migrate := o.ids["n1"], o.ids["n2"], "n1 MIGRATE "+o.address("n2")+" _ 0 500 AUTH "
	return []event{
		{"agreed failover", send("n4 CLUSTER FAILOVER"), []string{"n4=master", "n1=replica of n4"}},
		{"takeover", send("n1 CLUSTER FAILOVER TAKEOVER"), []string{"n1=master", "n4=replica of n1"}},
		{"slot migration", send("n1 SET {orders}1 v",
			"n2 CLUSTER SETSLOT 105 IMPORTING "+n1, "n1 CLUSTER SETSLOT 105 MIGRATING "+n2,
			migrate+o.c.Endpoints(0).Password+" KEYS {orders}1",
			"n2 CLUSTER SETSLOT 105 NODE "+n2, "n1 CLUSTER SETSLOT 105 NODE "+n2),
			[]string{"n1 slots=0-104 106-5460", "n2 slots=105 5461-10921"}},
		{"forced failover", send("n5 CLUSTER FAILOVER FORCE"), []string{"n5=master", "n2=replica of n5"}},
		{"kill of a master", func() error { return o.c.Kill(o.ctx, "n3") },
			[]string{"n6=master", "n3 failure=fail"}},
		{restart, func() error { o.restarted = "n3"; return o.c.Restart(o.ctx, "n3") },
			[]string{"n3=replica of n6", "n3 failure=none"}},
		{"forced failover of a dead master", func() error {
			o.restarted = ""
			return errors.Join(o.c.Kill(o.ctx, "n6"), o.commands("n3 CLUSTER FAILOVER FORCE"))
		}, []string{"n3=master", "n6 failure=fail"}},
		{"partition of a master", func() error { o.apart = "n1"; return o.partition("n1", cluster.Drop) },
			[]string{"n4=master", "n1 failure=fail"}},
		{"end of a partition", func() error {
			o.apart, o.restarted = "", "n1"
			return o.partition("n1", cluster.Pass)
		}, []string{"n1=replica of n4", "n1 failure=none"}},
	}
}

// run records all events.
func (o *observer) run() (r recording, err error) {
	for _, e := range o.events() {
		done := func(r *recorded) bool {
			return o.all(append([]string{"state=ok"}, e.end...)...) && o.settled(r)
		}
		one, err := record(o, e, done)
		if err != nil {
			return r, fmt.Errorf("%s: %w", e.name, err)
		}
		r.Events = append(r.Events, one)
	}
	return r, nil
}
