package faults

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// grantReply is a fault of the reply to a grant, and of no other reply. It holds the servers' replies to a client,
// asks the servers past the gates whether one of them has granted the client's acquire, and lets the held replies pass
// if none has. The replies of a server that has granted it stay held, or are dropped.
type grantReply struct {
	env    Env
	client int
	links  cluster.Links
	nodes  []grantNode
	mode   cluster.Mode // for the reply to the grant: Hold or Drop

	// turn is held while rules are changed. It is not a mutex, for the reason in [command].
	turn   chan struct{}
	healed bool
}

// grantNode is the link to one node, and the last sample of the node.
type grantNode struct {
	name    string
	link    Resource
	dropped int64 // before the fault
	decided bool  // it has granted the acquire
	before  map[string]history.KeyState
}

// grantReplySpec completes the row of a fault of the reply to a grant.
func grantReplySpec(s Spec, mode cluster.Mode) Spec {
	s.Targets = []Target{Waiter, Holder, Client}
	s.Resources = repliesTo
	s.Samples = true
	s.Lacks = func(c cluster.Cluster) string {
		return cmp.Or(lacksLinks(c), lacks[cluster.Witness]("sample nodes")(c))
	}
	s.Inject = func(ctx context.Context, env Env, target string) (Injection, error) {
		number, _ := cluster.ClientNumber(target)
		g := &grantReply{env: env, client: number, links: env.Cluster.(cluster.Links), mode: mode,
			turn: make(chan struct{}, 1)}
		for _, n := range env.Cluster.Nodes() {
			g.nodes = append(g.nodes, grantNode{name: n.Name, link: link(target, n.Name, cluster.Back)})
		}
		held := g.held()
		before, err := trafficOf(g.links, held)
		if err != nil {
			return nil, err
		}
		for i := range g.nodes {
			g.nodes[i].dropped, g.nodes[i].before = before[i].Dropped, g.sample(ctx, g.nodes[i].name).Keys
			if err := g.set(g.nodes[i].link, cluster.Hold); err != nil {
				_ = passAll(g.links, held) // the caller gets no Injection to heal
				return nil, err
			}
		}
		return g, nil
	}
	return s
}

func (g *grantReply) held() (all []Resource) {
	for _, n := range g.nodes {
		all = append(all, n.link)
	}
	return all
}

func (g *grantReply) set(r Resource, mode cluster.Mode) error {
	if err := g.links.SetRule(r.Link, r.Dir, cluster.Rule{Mode: mode}); err != nil {
		return fmt.Errorf("setting a rule for %s: %w", r, err)
	}
	return nil
}

func (g *grantReply) sample(ctx context.Context, node string) history.Sample {
	return g.env.Cluster.(cluster.Witness).Sample(ctx, node, g.env.Keys)
}

// Observe waits for a grant whose reply is held or lost.
func (g *grantReply) Observe(ctx context.Context) (string, error) {
	what := fmt.Sprintf("a grant to %s before its reply", cluster.ClientName(g.client))
	return await(ctx, what, func() (effect string, done bool) {
		g.turn <- struct{}{}
		defer func() { <-g.turn }()
		if g.healed {
			return "", false
		}
		request, asks := g.env.State.Acquiring(g.client)
		for i := range g.nodes {
			if done = g.step(ctx, &g.nodes[i], request, asks); done {
				n := &g.nodes[i]
				return fmt.Sprintf("%s granted %s to client %d, and its reply was %s", n.name, request.Key,
					g.client, map[cluster.Mode]string{cluster.Hold: "held", cluster.Drop: "lost"}[g.mode]), true
			}
		}
		return "", false
	})
}

// step looks at one node. It reports whether the reply to a grant is held or lost.
func (g *grantReply) step(ctx context.Context, n *grantNode, request cluster.Acquire, asks bool) (done bool) {
	begun := time.Now()
	traffic, err := g.links.Traffic(n.link.Link, n.link.Dir)
	if err != nil {
		return false
	}
	if n.decided {
		if asks && g.counter(traffic, n) > 0 {
			return true
		}
		if !asks { // the client has its reply: it came before the rule
			n.decided = false
			g.release(n, begun)
		}
		return false
	}
	s := g.sample(ctx, n.name) // after the traffic was read: a hold that it does not have was not granted by these bytes
	if !s.Up {
		return false // the request to which the held bytes reply is unknown
	}
	before := n.before
	n.before = s.Keys
	if asks && s.Role == roleMaster && request.GrantedIn(s.Keys, before) {
		n.decided = g.set(n.link, g.mode) == nil
		return false
	}
	if now, err := g.links.Traffic(n.link.Link, n.link.Dir); err == nil && now.Waiting == traffic.Waiting {
		g.release(n, begun) // also with nothing waiting: a simulated handshake has no bytes
	}
	return false
}

// counter shows that the reply to the grant is held or lost.
func (g *grantReply) counter(t cluster.Traffic, n *grantNode) int64 {
	if g.mode == cluster.Drop {
		return t.Dropped - n.dropped
	}
	return t.Waiting
}

// release delivers the bytes held by then, and holds the following ones: a grant may have been made since.
func (g *grantReply) release(n *grantNode, by time.Time) {
	_ = g.links.SetRule(n.link.Link, n.link.Dir, cluster.Rule{Mode: cluster.Hold, Once: true, HeldBy: by})
}

// Heal delivers the held bytes; connections that have lost bytes are reset.
func (g *grantReply) Heal(ctx context.Context) (string, error) {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-g.turn }()
	how := "held replies were delivered"
	if g.mode == cluster.Drop {
		how = "the connections that had lost a reply were reset"
	}
	if g.healed {
		return how, nil
	}
	g.healed = true
	return how, passAll(g.links, g.held())
}
