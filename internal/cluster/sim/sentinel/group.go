package sentinel

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Config is the configuration of Sentinels that watch one master.
type Config struct {
	Count     int           // of Sentinels
	Quorum    int           // of Sentinels that must agree that the master is down
	DownAfter time.Duration // down-after-milliseconds
	Servers   []string      // addresses; the first is the master
	Master    string        // the name of the master
	Password  string        // of the Sentinels and, to clients, of the servers; empty: none
	Version   string        // redis_version
}

// Sentinels are the Sentinels of one master. The zero value has none.
type Sentinels struct{ list []*sentinel }

// New adds Sentinels to a network: hosts s1, s2, …, that are not started.
func New(world *network.World, cfg Config) *Sentinels {
	g := &Sentinels{}
	for i := range cfg.Count {
		s := &sentinel{group: g, config: cfg}
		number := strconv.Itoa(i + 1)
		s.Init(world, "s"+number, "10.2.0."+number+":"+strconv.Itoa(port), s)
		s.rng = world.Stream(network.NameHash(s.Name))
		s.id = network.NewID(s.rng)
		g.list = append(g.list, s)
		world.Sentinels.Hosts = append(world.Sentinels.Hosts, &s.Host)
	}
	return g
}

// Addrs are the addresses of all.
func (g *Sentinels) Addrs() []string {
	return format.Texts(g.list, func(s *sentinel) string { return s.Addr })
}

// Failover sends SENTINEL FAILOVER to one after another until one accepts. The world is locked.
func (g *Sentinels) Failover() error {
	var errs []error
	for _, s := range g.list {
		err := cluster.ErrDown
		if s.Up && !s.Paused {
			if err = s.forceFailover(); err == nil {
				s.done()
				return nil
			}
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.Name, err))
	}
	return errors.Join(errs...)
}

// settledMS is how long every Sentinel must have seen the master in its role before it is ready: a master that dies in
// its first second is replaced a second later than otherwise, on real servers too.
const settledMS = 1100

// NotReady names the servers that a Sentinel does not see yet, "" if they see everything. The world is locked.
func (g *Sentinels) NotReady() string {
	for _, s := range g.list {
		for _, i := range s.all() {
			switch {
			case i.wire == nil || !i.wire.up || i.sdown || i.odown:
				return fmt.Sprintf("%s sees %s as %s", s.Name, i.addr, i.flags())
			case i.kind == aMaster && !s.mayStart():
				return s.Name + " has begun a failover itself"
			case i.kind == aMaster && (i.infoAt == 0 || s.Millis()-i.roleAt < settledMS):
				return fmt.Sprintf("%s has known the master for less than %d ms", s.Name, settledMS)
			case i.kind == aReplica && (i.infoAt == 0 || !i.linkUp):
				return fmt.Sprintf("%s does not know whether %s is in sync", s.Name, i.addr)
			}
		}
	}
	return ""
}
