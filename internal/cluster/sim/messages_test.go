package sim_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// audience subscribes at every node of a Redis Cluster and records who gets which message.
type audience struct {
	c    cluster.Cluster
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	nodes   []*redis.Client
	log     []string
	readers []*redis.PubSub
}

// lastMessage is published at every node after the others: messages between two nodes arrive in order.
const lastMessage = "last"

// record publishes on an ordinary and on a shard channel, at every node and from a script, and records for each node
// its replies and its subscribers' messages.
func (a *audience) record() ([]string, error) {
	for _, n := range a.c.Nodes() {
		a.nodes = append(a.nodes, redis.NewClient(&redis.Options{Addr: n.Addr, Dialer: a.dial,
			Password: a.c.Endpoints(0).Password, MaxRetries: -1, DialerRetries: 1,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}))
	}
	defer func() {
		for _, r := range a.readers {
			_ = r.Close()
		}
		for _, c := range a.nodes {
			_ = c.Close()
		}
	}()
	all, shard, err := a.subscribe()
	if err != nil {
		return nil, err
	}
	channel := keyAt(2)
	const script = "return redis.call('PUBLISH', ARGV[1], 'script of ' .. ARGV[2])"
	for i, c := range a.nodes {
		name := a.c.Nodes()[i].Name
		a.note("PUBLISH at "+name, c.Publish(a.ctx, channel, name))
		a.note("SPUBLISH at "+name, c.SPublish(a.ctx, channel, name))
		a.note("script at "+name, c.Eval(a.ctx, script, nil, channel, name))
	}
	for _, c := range a.nodes {
		if err := c.Publish(a.ctx, channel, lastMessage).Err(); err != nil {
			return nil, err
		}
		c.SPublish(a.ctx, channel, lastMessage) // refused by the other shards
	}
	for i, list := range [][]*redis.PubSub{all, shard} {
		for j, p := range list {
			senders := len(a.nodes)
			if i == 1 {
				senders = len(list)
			}
			got, err := a.receive(p, senders)
			if err != nil {
				return nil, fmt.Errorf("subscriber %d of %d: %w", j+1, i, err)
			}
			a.log = append(a.log, fmt.Sprintf("subscriber %d of kind %d got %v", j+1, i, got))
		}
	}
	return a.log, a.failOver(a.nodes[4], shard[0])
}

// failOver makes a replica take over, and records the end of the subscription at its master, which loses the slot.
func (a *audience) failOver(replica *redis.Client, shard *redis.PubSub) error {
	if err := replica.Do(a.ctx, "CLUSTER", "FAILOVER").Err(); err != nil {
		return err
	}
	m, err := shard.ReceiveTimeout(a.ctx, 10*time.Second)
	a.log = append(a.log, fmt.Sprintf("after the failover: %v", m))
	return err
}

// subscribe subscribes at every node to the channel and to the shard channel, which only a shard has.
func (a *audience) subscribe() (all, shard []*redis.PubSub, err error) {
	channel := keyAt(2)
	for i, c := range a.nodes {
		p := c.Subscribe(a.ctx, channel)
		a.readers, all = append(a.readers, p), append(all, p)
		if _, err := p.Receive(a.ctx); err != nil {
			return nil, nil, err
		}
		s := c.SSubscribe(a.ctx, channel)
		a.readers = append(a.readers, s)
		_, err := s.Receive(a.ctx)
		a.log = append(a.log, fmt.Sprintf("SSUBSCRIBE at %s: %s", a.c.Nodes()[i].Name, a.named(err)))
		if err == nil {
			shard = append(shard, s)
		}
	}
	return all, shard, nil
}

// receive reads a subscriber's messages until the last message of every sender, sorted: senders are not in step.
func (a *audience) receive(p *redis.PubSub, senders int) (got []string, err error) {
	for last := 0; last < senders; {
		m, err := p.ReceiveTimeout(a.ctx, 10*time.Second)
		if err != nil {
			return nil, fmt.Errorf("after %v: %w", got, err)
		}
		message, ok := m.(*redis.Message)
		switch {
		case !ok:
		case message.Payload == lastMessage:
			last++
		default:
			got = append(got, message.Payload)
		}
	}
	slices.Sort(got)
	return got, nil
}

func (a *audience) note(what string, reply redis.Cmder) {
	text := a.named(reply.Err())
	if reply.Err() == nil {
		switch r := reply.(type) {
		case *redis.IntCmd:
			text = fmt.Sprint(r.Val())
		case *redis.Cmd:
			text = fmt.Sprint(r.Val())
		}
	}
	a.log = append(a.log, what+": "+text)
}

// named is an error with names in place of addresses.
func (a *audience) named(err error) string {
	if err == nil {
		return "ok"
	}
	text := err.Error()
	for _, n := range a.c.Nodes() {
		text = strings.ReplaceAll(text, n.Addr, n.Name)
	}
	return text
}

func simulatedMessages(t *testing.T) (log []string) {
	t.Helper()
	simulate(t, sim.Config{Topology: shards(), Seed: 1, Password: "p"}, func(w *world) {
		a := &audience{c: w.Cluster, ctx: w.ctx, dial: w.Client(0).Dial}
		var err error
		if log, err = a.record(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// TestMessagesReachAllNodesOfACluster: PUBLISH reaches the subscribers of every node, and SPUBLISH its shard's
// (cluster.c, clusterPropagatePublish), whose subscriptions end when a replica takes over (removeChannelsInSlot).
func TestMessagesReachAllNodesOfACluster(t *testing.T) {
	log := simulatedMessages(t)
	const everywhere = "[n1 n2 n3 n4 n5 n6 script of n1 script of n2 script of n3 script of n4 script of n5 script of n6]"
	for i := range 6 {
		if want := fmt.Sprintf("subscriber %d of kind 0 got %s", i+1, everywhere); !slices.Contains(log, want) {
			t.Errorf("not in the log: %s", want)
		}
	}
	for i := range 2 {
		if want := fmt.Sprintf("subscriber %d of kind 1 got [n2 n5]", i+1); !slices.Contains(log, want) {
			t.Errorf("not in the log: %s", want)
		}
	}
	if want := "after the failover: sunsubscribe: " + keyAt(2); !slices.Contains(log, want) {
		t.Errorf("not in the log: %s", want)
	}
	if t.Failed() {
		t.Log(strings.Join(log, "\n"))
	}
}

// TestSimulatedAndRealMessagesAgree in their receivers, and in the replies to their publishers.
func TestSimulatedAndRealMessagesAgree(t *testing.T) {
	if _, err := process.Version(t.Context(), ""); err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	simulated := strings.Join(simulatedMessages(t), "\n")
	for attempt := 1; ; attempt++ {
		log, err := liveMessages(t)
		live := strings.Join(log, "\n")
		switch {
		case err == nil && live == simulated:
			return
		case attempt == 3: // nodes of a busy machine lose each other, and messages with that
			t.Fatalf("real, %v:\n%s\n\nsimulated:\n%s", err, live, simulated)
		}
		t.Logf("again: %v\n%s", err, live)
	}
}

func liveMessages(t *testing.T) (messages []string, err error) {
	t.Helper()
	withReal(t, shards(), func(c *process.Cluster) {
		var dialer net.Dialer
		messages, err = (&audience{c: c, ctx: t.Context(), dial: dialer.DialContext}).record()
	})
	return messages, err
}
