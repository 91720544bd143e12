package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// discover finds the servers and names them: masters first, as in a cluster that the harness starts.
func (t *Target) discover(ctx context.Context) error {
	if t.address.Username != "" && t.secrets.Password == "" {
		return errors.New("the target has a user but no password: set CHAOS_TARGET_PASSWORD, or use " +
			"--target-password-file")
	}
	t.topology.Kind = t.address.Kind
	var err error
	switch t.address.Kind {
	case cluster.Sentinel:
		err = t.askSentinels(ctx)
	case cluster.Sharded:
		err = t.askSlots(ctx)
	default:
		if t.topology.Kind == cluster.Quorum {
			t.topology.Masters = len(t.address.Servers)
		}
		for _, addr := range t.address.Servers {
			t.addNode(addr)
		}
	}
	if err == nil {
		err = t.checkNodes(ctx)
	}
	return err
}

func (t *Target) addNode(addr string) {
	t.nodes = append(t.nodes, t.newServer(fmt.Sprintf("n%d", len(t.nodes)+1), addr, false))
}

// checkNodes makes sure that every node replies to the questions of a run: its role, and the state of a key.
func (t *Target) checkNodes(ctx context.Context) error {
	for i, s := range t.nodes {
		commands := append([][]string{{"ROLE"}}, cluster.KeyCommands([]string{t.prefix + "check"})...)
		replies, err := s.ask(ctx, commands...)
		if err != nil {
			return err
		}
		role, err := cluster.ParseRole(replies[0])
		if err != nil {
			return fmt.Errorf("ROLE at %s: %w (a run needs the commands ROLE, HGETALL, GET, PTTL, SCAN and UNLINK, "+
				"in addition to those of the lock)", s.addr, err)
		}
		if i < t.topology.MasterCount() && role.Name != "master" {
			return fmt.Errorf("%s is a replica: name its master, or use sentinel:// or cluster://", s.addr)
		}
		for _, reply := range replies[1:] {
			if refused, is := reply.(error); is && t.topology.Kind != cluster.Sharded {
				return fmt.Errorf("reading a key at %s: %w", s.addr, refused)
			}
		}
	}
	return nil
}

// askSentinels finds the master, its replicas and the other Sentinels.
func (t *Target) askSentinels(ctx context.Context) error {
	known := map[string]bool{}
	add := func(addr string) {
		if !known[addr] {
			known[addr] = true
			t.sentinels = append(t.sentinels, t.newServer(fmt.Sprintf("s%d", len(t.sentinels)+1), addr, true))
		}
	}
	for _, addr := range t.address.Servers {
		add(addr)
	}
	first := t.sentinels[0]
	master, err := first.one(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", t.address.Master)
	if err != nil {
		return err
	}
	pair, _ := master.([]any)
	if len(pair) != 2 {
		return fmt.Errorf("master %q is not known to Sentinel %s", t.address.Master, first.addr)
	}
	t.addNode(hostPort(pair[0], pair[1]))
	replicas, err := t.announced(ctx, first, "REPLICAS")
	if err != nil {
		return err
	}
	if len(replicas) == 0 {
		return fmt.Errorf("master %s has no replica that Sentinel knows", t.nodes[0].addr)
	}
	for _, addr := range replicas {
		t.addNode(addr)
	}
	others, err := t.announced(ctx, first, "SENTINELS")
	for _, addr := range others {
		if !t.isSentinel(ctx, addr) {
			add(addr)
		}
	}
	t.topology.Replicas, t.topology.Sentinels = len(replicas), len(t.sentinels)
	return err
}

// isSentinel reports whether addr is a Sentinel that was named under another address, such as a host name.
func (t *Target) isSentinel(ctx context.Context, addr string) bool {
	host, port, _ := net.SplitHostPort(addr)
	for _, s := range t.sentinels {
		name, number, _ := net.SplitHostPort(s.addr)
		if number != port {
			continue
		}
		if ips, err := net.DefaultResolver.LookupHost(ctx, name); err == nil && slices.Contains(ips, host) {
			return true
		}
	}
	return false
}

// announced are the addresses in a Sentinel's list of replicas or Sentinels, sorted.
func (t *Target) announced(ctx context.Context, s *server, list string) (addrs []string, err error) {
	reply, err := s.one(ctx, "SENTINEL", list, t.address.Master)
	items, _ := reply.([]any)
	for _, item := range items {
		f := cluster.Fields(item)
		addrs = append(addrs, hostPort(f["ip"], f["port"]))
	}
	slices.Sort(addrs)
	return addrs, err
}

// askSlots finds the nodes of a Redis Cluster: masters in the order of their slots, then replicas, of each master in
// turn.
func (t *Target) askSlots(ctx context.Context) error {
	first := t.newServer("n1", t.address.Servers[0], false)
	defer first.own.Close()
	reply, err := first.one(ctx, "CLUSTER", "SLOTS")
	if err != nil {
		return err
	}
	ranges, _ := reply.([]any)
	slices.SortFunc(ranges, func(a, b any) int { return cmp.Compare(start(a), start(b)) })
	var masters []string
	replicas := map[string][]string{}
	for _, r := range ranges {
		items, _ := r.([]any)
		if len(items) < 3 {
			return fmt.Errorf("CLUSTER SLOTS at %s: unexpected reply %v", first.addr, r)
		}
		var addrs []string
		for _, item := range items[2:] {
			node, _ := item.([]any)
			if len(node) < 2 {
				return fmt.Errorf("CLUSTER SLOTS at %s: unexpected node %v", first.addr, item)
			}
			host := node[0]
			if host == "" || host == nil { // the address that was asked (redis.io, CLUSTER SLOTS)
				host, _, _ = net.SplitHostPort(first.addr)
			}
			addrs = append(addrs, hostPort(host, node[1]))
		}
		if !slices.Contains(masters, addrs[0]) {
			masters = append(masters, addrs[0])
		}
		replicas[addrs[0]] = addrs[1:]
	}
	if len(masters) == 0 {
		return fmt.Errorf("the cluster of %s has no slots", first.addr)
	}
	t.arrange(masters, replicas)
	return nil
}

func start(slots any) int64 {
	items, _ := slots.([]any)
	if len(items) == 0 {
		return 0
	}
	n, _ := items[0].(int64)
	return n
}

// arrange names the nodes of a cluster; Topology.Replicas is the least number of any master.
func (t *Target) arrange(masters []string, replicas map[string][]string) {
	for _, addr := range masters {
		t.addNode(addr)
	}
	most, least := 0, len(replicas[masters[0]])
	for _, m := range masters {
		most, least = max(most, len(replicas[m])), min(least, len(replicas[m]))
	}
	for i := range most {
		for _, m := range masters {
			if i < len(replicas[m]) {
				t.addNode(replicas[m][i])
			}
		}
	}
	t.topology.Masters, t.topology.Replicas = len(masters), least
}
