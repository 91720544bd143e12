package sim

import (
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/sentinel"
)

// fromSentinel handles a Sentinel's message to a data server.
func (n *node) fromSentinel(s *session, msg any) {
	reply := func(msg any, size int64) { s.Conn.Send(network.Back, network.Segment{Msg: msg, Size: size}) }
	switch m := msg.(type) {
	case sentinel.Ping:
		reply(sentinel.Pong{}, sentinel.SmallSize)
	case sentinel.InfoRequest:
		reply(sentinel.InfoReply{Info: n.report()}, sentinel.InfoReplySize)
	case sentinel.Subscribe:
		n.listeners = append(n.listeners, s)
	case sentinel.Hello:
		for _, l := range n.listeners {
			l.Conn.Send(network.Back, network.Segment{Msg: m, Size: sentinel.HelloSize})
		}
	case sentinel.ReplicaOf:
		n.follow(m.Addr)
		n.repl.saved = m.Addr
		n.harness.ask([]string{"CLIENT", "KILL", "TYPE", "normal"}, []string{"CLIENT", "KILL", "TYPE", "pubsub"})
		n.done()
	}
}

// report is the server's INFO.
func (n *node) report() sentinel.Info {
	r := &n.repl
	all := sentinel.Info{ID: n.id, Replica: r.master != "", Master: r.master, Priority: n.priority, Offset: r.offset}
	for _, a := range r.replicas {
		all.Replicas = append(all.Replicas, a.addr)
	}
	if all.Replica {
		all.LinkUp = n.linkState() == linkConnected
		if !all.LinkUp {
			all.LinkDown = max(1000, (n.World.Now()-r.downAt)/1e6)
		}
	}
	return all
}
