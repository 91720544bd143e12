package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/etcdreader"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/line"
	"github.com/lockchaos/lockchaos/internal/format"
)

// serverVariable is in the environment of an etcd member and has its name: members connect to each other from any
// address, so the gates between them recognize a caller by its process.
const serverVariable = "LOCKCHAOS_SERVER"

// openMemberGate opens the gate in front of the peer port of member s. All members know it by that gate: they compute
// the ids of the members, and of the cluster, from the addresses, which therefore must be the same for all.
func (c *Cluster) openMemberGate(s *server) (err error) {
	listen := s.location.BusGate
	s.bus, err = gate.Open(gate.Config{
		Listen: listen.String(), Target: s.location.at(s.location.BusPort),
		Identify: func(from netip.AddrPort) string {
			if name, ok := child.SocketVariable(from, listen, serverVariable); ok {
				return name
			}
			return cluster.UnknownClient
		},
	})
	s.env = append(s.env, serverVariable+"="+s.name)
	return err
}

// etcdSoftware is a cluster of etcd members.
type etcdSoftware struct{ ensemble }

// config is the configuration file of a member that starts for the first time.
func (e etcdSoftware) config(s *server) string { return e.configIn(s, "new") }

// configIn is the configuration file of a member of a cluster in that initial state: new or existing. The short
// heartbeats make the others notice a dead leader in half a second.
func (e etcdSoftware) configIn(s *server, state string) string {
	options := map[string]string{"heartbeat-interval": "20", "election-timeout": "400", "snapshot-count": "100000"}
	maps.Copy(options, e.topology.Options)
	if value := options[cluster.NoFsync]; value != "" {
		options[cluster.NoFsync] = strconv.FormatBool(value == "yes")
	}
	p := s.location
	members := format.Texts(e.nodes, func(n *server) string { return n.name + "=" + peerURL(n) })
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(options)) {
		fmt.Fprintf(&b, "%s: %s\n", name, options[name])
	}
	for _, line := range [][2]string{
		{"name", s.name}, {"data-dir", filepath.Join(s.disk, "data")},
		{"listen-client-urls", "http://" + p.target()}, {"advertise-client-urls", "http://" + p.Gate.String()},
		{"listen-peer-urls", "http://" + p.at(p.BusPort)},
		{"initial-advertise-peer-urls", peerURL(s)}, {"initial-cluster", strings.Join(members, ",")},
		{"initial-cluster-token", strconv.Itoa(e.port)}, {"initial-cluster-state", state},
		{"logger", "zap"}, {"log-level", "warn"},
	} {
		fmt.Fprintf(&b, "%s: %q\n", line[0], line[1])
	}
	// the strict check refuses to replace a member for five seconds after it was lost
	return b.String() + "log-outputs: [stderr]\nmax-txn-ops: 4096\nstrict-reconfig-check: false\n"
}

// peerURL is where the other members reach s.
func peerURL(s *server) string { return "http://" + s.location.BusGate.String() }

// prepare replaces a member whose disk is empty after its first start, as an operator has to: a member that came back
// under its old identity would have lost its promises, and etcd ends it.
func (e etcdSoftware) prepare(_ context.Context, s *server) ([]string, error) {
	if _, err := os.Stat(filepath.Join(s.disk, "data", "member")); err != nil && s.proc.Load() != nil {
		if err := e.replace(s); err != nil {
			return nil, fmt.Errorf("replacing member %s, whose disk is empty: %w", s.name, err)
		}
		if err := os.WriteFile(s.conf, []byte(e.configIn(s, "existing")), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--config-file", s.conf}, nil
}

// replaceWait bounds the replacement of a member, during which there may be elections; replaceTry bounds one request
// for it, which an election can lose; replacePause is the time between two.
const (
	replaceWait  = 30 * time.Second
	replaceTry   = 3 * time.Second
	replacePause = 100 * time.Millisecond
)

// replace removes member s from the cluster, and adds one at the same address. A majority has to agree.
func (e etcdSoftware) replace(s *server) error {
	others := slices.DeleteFunc(slices.Clone(e.nodes), func(n *server) bool { return n == s || !n.responsive() })
	if len(others) <= len(e.nodes)/2 {
		return fmt.Errorf("needs a majority of the members: %d of %d reply: %w", len(others), len(e.nodes), cluster.ErrDown)
	}
	var err error
	begin := time.Now()
	for i := 0; time.Since(begin) < replaceWait; i = (i + 1) % len(others) {
		ctx, cancel := context.WithTimeout(context.Background(), replaceTry)
		if err = others[i].reader.(*etcdreader.Reader).Replace(ctx, peerURL(s)); err == nil {
			cancel()
			return nil
		}
		// Lost in an election, or the member does not know of another one's action yet: retried.
		err = fmt.Errorf("%s: %w", others[i].name, err)
		cancel()
		<-time.After(replacePause)
	}
	return fmt.Errorf("still failing after %v: %w: %w", replaceWait, err, cluster.ErrDown)
}

// ping connects: a member without a majority does not serve clients, but listens.
func (etcdSoftware) ping(ctx context.Context, s *server) error {
	conn, err := line.Dial(ctx, s.location.target(), "")
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// time is not known: clocks of etcd members cannot be set.
func (etcdSoftware) time(context.Context, *server) (time.Time, error) {
	return time.Time{}, errors.ErrUnsupported
}
