package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/zookeeperreader"
)

// classArchive is the class-data archive (java(1), -XX:SharedArchiveFile) that scripts/zookeeper adds to the jar files.
// With it a server starts in two thirds of the time. Java ignores an archive from another version of it.
const classArchive = "classes.jsa"

// peerGates are the gates through which one member of an ensemble reaches another: each member's configuration names
// the others by gates of its own, because Java cannot choose the address from which it connects.
type peerGates struct{ quorum, election *gate.Gate }

// peerNet is the second octet of the addresses of those gates.
const peerNet = 6

// peerAddr is where member from reaches member to.
func peerAddr(from, to, port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, peerNet, byte(from), byte(to)}), uint16(port))
}

// renamePeer returns a function that replaces the address of member from by the address of the gate through which
// member to reaches it. A member that connects to another for an election sends its own address, and if the other's
// number is greater, that one ends the connection and connects to the address (QuorumCnxManager, InitialMessage): past
// the gates. The message has the length of the address, so both must have the same, as numbers up to 9 have.
func renamePeer(from *server, to int) func([]byte) {
	port := from.location.electionPort()
	own := []byte(from.location.at(port))
	gate := []byte(peerAddr(to, from.I, port).String())
	return func(message []byte) {
		if i := bytes.Index(message, own); i >= 0 && len(own) == len(gate) {
			copy(message[i:], gate)
		}
	}
}

// electionPort is where a member of an ensemble listens for votes; it listens for followers at BusPort.
func (p Location) electionPort() int { return p.BusPort + 1 }

// openPeerGates opens the gates in front of member s, which refuse until it runs: a gate that accepts a connection and
// closes it delays an election.
func (c *Cluster) openPeerGates(s *server) error {
	for _, from := range c.nodes {
		if from == s {
			continue
		}
		open := func(port int) (*gate.Gate, error) {
			g, err := gate.Open(gate.Config{
				Listen: peerAddr(from.I, s.I, port).String(), Target: s.location.at(port),
				Identify: func(netip.AddrPort) string { return from.name }, Late: true, First: renamePeer(from, s.I),
			})
			if err != nil {
				return nil, err
			}
			return g, g.Refuse()
		}
		quorum, err1 := open(s.location.BusPort)
		election, err2 := open(s.location.electionPort())
		s.peers = append(s.peers, peerGates{quorum, election})
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
	}
	return nil
}

// zookeeperSoftware is an ensemble of ZooKeeper servers.
type zookeeperSoftware struct {
	ensemble
	library string
}

// config names the other members by the gates in front of them. The short ticks make an ensemble notice a dead leader
// in a second; sessions are not affected by them, except that their timeouts are rounded up to a tick.
func (z zookeeperSoftware) config(s *server) string {
	options := map[string]string{
		"tickTime": "100", "initLimit": "50", "syncLimit": "10", "minSessionTimeout": "200", "maxSessionTimeout": "60000",
		"forceSync": "yes", "preAllocSize": "1024", "snapCount": "100000", "cnxTimeout": "500",
		"fastleader.minNotificationInterval": "50", "fastleader.maxNotificationInterval": "200",
		"leader.closeSocketAsync": "true", "learner.closeSocketAsync": "true",
		"maxClientCnxns": "0", "admin.enableServer": "false", "4lw.commands.whitelist": "ruok,srvr",
		"standaloneEnabled": "false", "reconfigEnabled": "false", "autopurge.purgeInterval": "0",
	}
	maps.Copy(options, z.topology.Options)
	var b strings.Builder
	fmt.Fprintf(&b, "dataDir=%s\n", s.disk)
	for _, name := range slices.Sorted(maps.Keys(options)) {
		fmt.Fprintf(&b, "%s=%s\n", name, options[name])
	}
	for _, other := range z.nodes {
		p := other.location
		host := p.IP
		if other != s {
			host = peerAddr(s.I, other.I, 0).Addr()
		}
		fmt.Fprintf(&b, "server.%d=%s:%d:%d;%s:%d\n", other.I, host, p.BusPort, p.electionPort(), p.IP, p.Port)
	}
	return b.String()
}

// prepare writes the member's number to its disk, where ZooKeeper reads it: a wiped disk has none.
func (z zookeeperSoftware) prepare(_ context.Context, s *server) ([]string, error) {
	if err := os.WriteFile(filepath.Join(s.disk, "myid"), fmt.Appendln(nil, s.I), 0o644); err != nil {
		return nil, err
	}
	return []string{
		"-Xms16m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-XX:SharedArchiveFile=" + filepath.Join(z.library, classArchive), "-Xlog:cds=off", "-Xlog:cds+dynamic=off",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-cp", classPath(z.library), "org.apache.zookeeper.server.quorum.QuorumPeerMain", s.conf,
	}, nil
}

// classPath lists the jar files by name and not by a wildcard: an archive is valid for one class path.
func classPath(library string) string {
	jars, _ := filepath.Glob(filepath.Join(library, "*.jar")) // the pattern is valid; sorted
	return strings.Join(jars, string(filepath.ListSeparator))
}

func (zookeeperSoftware) ping(ctx context.Context, s *server) error {
	reply, err := zookeeperreader.FourLetters(ctx, s.location.target(), "ruok")
	if err == nil && reply != "imok" {
		err = fmt.Errorf("ruok: %q", reply)
	}
	return err
}

// time is the time of the leader's clock; other members do not show theirs.
func (zookeeperSoftware) time(ctx context.Context, s *server) (time.Time, error) {
	return s.reader.(*zookeeperreader.Reader).Time(ctx)
}
