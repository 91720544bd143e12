package zookeeper

import (
	"strconv"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// Version is the version of ZooKeeper that is simulated.
const Version = "3.9.4"

// Ensemble is the members of an ensemble. Its methods may be called from several goroutines of the bubble.
type Ensemble struct {
	world   *network.World
	members []*member
}

// New adds the members of an ensemble to a network: hosts n1, n2, …, that are not started. The options are keys of
// zoo.cfg; a key that is missing or has no number has its default.
func New(world *network.World, size int, options map[string]string) *Ensemble {
	e := &Ensemble{world: world}
	for i := range size {
		m := &member{ensemble: e, number: i + 1, settings: settingsOf(options)}
		m.Init(world, "n"+strconv.Itoa(i+1), "10.1.0."+strconv.Itoa(i+1)+":2181", m)
		m.disk.force = m.settings.forceSync
		e.members = append(e.members, m)
	}
	return e
}

// member is the member of that number.
func (e *Ensemble) member(number int) *member { return e.members[number-1] }

// NotServing names a member that does not serve clients yet, "" if all do. The world is locked.
func (e *Ensemble) NotServing() string {
	for _, m := range e.members {
		if !m.serving {
			return m.Name
		}
	}
	return ""
}
