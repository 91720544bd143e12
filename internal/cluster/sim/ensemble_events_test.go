package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// peers sets a rule between a member and the other two, both ways.
func (o *ensembleObserver) peers(label string, rule cluster.Rule) error {
	var errs []error
	for other, name := range o.names { // in any order: rules of different links
		if other != label {
			errs = append(errs, o.c.SetRule(cluster.Link{From: o.names[label], To: name}, cluster.Both, rule),
				o.c.SetRule(cluster.Link{From: name, To: o.names[label]}, cluster.Both, rule))
		}
	}
	return errors.Join(errs...)
}

// ensembleEvent is an event that continues from the state after the last one or, if fresh, starts with three running
// members.
type ensembleEvent struct {
	event
	fresh bool     // prepare is called before it
	may   []string // possible effects besides its end that would disturb another event
}

// everyone: without a leader, all clients lose their connections and all members their roles.
var everyone = []string{
	"c0 session=StateDisconnected", "c1 session=StateDisconnected", "le role=none", "hi role=none", "lo role=none",
}

// ensembleEvents are done one after the other.
func (o *ensembleObserver) ensembleEvents() []ensembleEvent {
	return slices.Concat(o.lossesOfMembers(), o.partitionsOfOthers())
}

// each does the same to the members of these labels.
func (o *ensembleObserver) each(do func(ctx context.Context, node string) error, labels ...string) func() error {
	return func() error {
		var errs []error
		for _, label := range labels {
			errs = append(errs, do(o.ctx, o.names[label]))
		}
		return errors.Join(errs...)
	}
}

// apart sets a rule between a member and the other two.
func (o *ensembleObserver) apart(label string, mode cluster.Mode) func() error {
	return func() error { return o.peers(label, cluster.Rule{Mode: mode}) }
}

// lossesOfMembers are events after which there is another leader, no leader, or one follower fewer.
func (o *ensembleObserver) lossesOfMembers() []ensembleEvent {
	kill := func(labels ...string) func() error { return o.each(o.c.Kill, labels...) }
	restart := func(labels ...string) func() error { return o.each(o.c.Restart, labels...) }
	writing := func(do func() error) func() error { // c0 writes, as soon as it was done
		return func() error {
			err := do()
			o.write()
			return err
		}
	}
	replaced := []string{
		"hi role=leader", "lo role=follower", "c0 session=StateHasSession", "c1 session=StateHasSession",
		"c0 write=accepted in epoch +1", "c1 watch 1=EventNodeDataChanged flag",
	}
	return []ensembleEvent{
		{event{"kill of the leader", writing(kill("le")), replaced}, true, everyone},
		{event{"restart of the former leader", restart("le"), []string{"le role=follower"}}, false, nil},
		{event{"kill of a follower", writing(kill("lo")), []string{
			"lo role=none", "c1 session=StateHasSession", "c0 write=accepted in epoch +0",
			"c1 watch 1=EventNodeDataChanged flag",
		}}, true, []string{"c1 session=StateDisconnected", "lo role=none"}},
		{event{"restart of a follower", restart("lo"), []string{"lo role=follower"}}, false, nil},
		{event{"pause of the leader", writing(func() error {
			o.skipped = "le"
			return o.c.Pause(o.ctx, o.names["le"])
		}), replaced}, true, everyone},
		{event{"end of a pause of the leader", func() error {
			o.skipped = ""
			return o.c.Resume(o.ctx, o.names["le"])
		}, []string{"le role=follower"}}, false, []string{"le role=none"}},
		{event{"partition of the leader from its followers", writing(o.apart("le", cluster.Hold)), replaced}, true, everyone},
		{event{"end of that partition", o.apart("le", cluster.Pass), []string{"le role=follower"}}, false, []string{"le role=none"}},
		{event{"kill of both followers", kill("hi", "lo"), []string{
			"le role=none", "hi role=none", "lo role=none", "c0 session=StateDisconnected", "c1 session=StateDisconnected",
		}}, true, everyone},
		{event{"restart of both followers", writing(restart("hi", "lo")), []string{
			"lo role=follower", "c0 session=StateHasSession", "c1 session=StateHasSession", "c0 write=accepted in epoch +1",
			"c1 watch 1=EventNodeDataChanged flag",
		}}, false, everyone},
	}
}

// partitionsOfOthers are events that leave the leader its majority.
func (o *ensembleObserver) partitionsOfOthers() []ensembleEvent {
	client0 := cluster.Link{From: "client:0", To: cluster.Any}
	hold, pass := cluster.Rule{Mode: cluster.Hold}, cluster.Rule{}
	return []ensembleEvent{
		{event{"partition of a client", func() error { return o.c.SetRule(client0, cluster.Both, hold) }, []string{
			"c0 session=StateDisconnected", "le holder=-", "hi holder=-", "lo holder=-",
			"c1 watch 1=EventNodeDeleted holder", "c1 watch 2=EventNodeChildrenChanged lock",
		}}, true, []string{"c0 session=StateDisconnected"}},
		{event{"end of the partition of a client", func() error { return o.c.SetRule(client0, cluster.Both, pass) }, []string{
			"c0 session=StateExpired", "c0 session=StateHasSession",
		}}, false, []string{"c0 session=StateDisconnected", "c0 session=StateExpired"}},
		{event{"partition of a follower", o.readBehind, []string{
			"c0 write=accepted", "c1 read=old", "lo role=none", "c1 session=StateHasSession",
			"c1 watch 1=EventNodeDataChanged flag", "c1 read after sync=new",
		}}, true, []string{"lo role=none", "c1 session=StateDisconnected"}},
		{event{"end of the partition of a follower", o.apart("lo", cluster.Pass), []string{"lo role=follower"}}, false,
			[]string{"lo role=none"}},
	}
}

// readBehind cuts lo off from the others, has c0 write and c1 read at lo, and once more, after a sync, when c1 has
// another member.
func (o *ensembleObserver) readBehind() error {
	err := o.peers("lo", cluster.Rule{Mode: cluster.Hold})
	c0, c1 := o.clients[0], o.clients[1]
	again := c1.reconnection()
	if _, err := c0.conn.Set(o.flagPath(), []byte("new"), -1); err != nil {
		return err
	}
	c0.report("write=accepted")
	if err := o.read("read"); err != nil {
		return err
	}
	go func() {
		<-again
		c1.repeat(func() error {
			if _, err := c1.conn.Sync(o.flagPath()); err != nil {
				return err
			}
			return o.read("read after sync")
		})
	}()
	return err
}

// run records all events.
func (o *ensembleObserver) run() (r recording, err error) {
	defer o.closeClients()
	for _, e := range o.ensembleEvents() {
		if e.fresh {
			if err := o.prepare(); err != nil {
				return r, fmt.Errorf("before the %s: %w", e.name, err)
			}
		}
		o.allowed = map[string]bool{}
		for _, what := range slices.Concat(e.may, e.end) {
			o.allowed[what] = true
		}
		one, err := record(o, e.event, func(r *recorded) bool {
			seen := r.seen()
			return !slices.ContainsFunc(e.end, func(what string) bool { _, ok := seen[what]; return !ok })
		})
		if err != nil {
			return r, fmt.Errorf("%s: %w", e.name, err)
		}
		r.Events = append(r.Events, one)
	}
	return r, nil
}
