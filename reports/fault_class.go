package reports

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Questions about the kind of a fault, as the run recorded it. No fault is known here by its name.

// does reports whether a fault is of that class and acts on one of the objects.
func (f *injection) does(class string, objects ...string) bool {
	return f.class == class && slices.Contains(objects, f.object)
}

// actsOn reports whether a fault acts on one of the objects, in whatever way.
func (f *injection) actsOn(objects ...string) bool { return slices.Contains(objects, f.object) }

// endsProcess: the process of a server or a client ended, and was started again at once, later or never.
func (f *injection) endsProcess() bool {
	return f.class == history.FaultKills || f.startsAgain()
}

// startsAgain: a process ended and was started again.
func (f *injection) startsAgain() bool {
	return f.class == history.FaultRestarts || f.class == history.FaultForgets
}

// empties: a server was started again without its data.
func (f *injection) empties() bool { return f.does(history.FaultForgets, history.ObjectData) }

// losesUnsynced: a server was started again without what it had not written to its disk.
func (f *injection) losesUnsynced() bool { return f.class == history.FaultForgets && !f.empties() }

// removesKeys: a server no longer has keys of locks, or nodes of holders.
func (f *injection) removesKeys() bool { return f.does(history.FaultRemoves, history.ObjectKeys) }

// plantsData: another program wrote to keys of locks.
func (f *injection) plantsData() bool { return f.does(history.FaultPlants, history.ObjectKeys) }

// duplicates: servers executed requests twice.
func (f *injection) duplicates() bool { return f.class == history.FaultDuplicates }

// skews: the clock of a server was set, or is too fast or too slow.
func (f *injection) skews() bool { return f.class == history.FaultSkews }

// drifts: the clock of a server is too fast or too slow.
func (f *injection) drifts() bool { return f.does(history.FaultSkews, history.ObjectRate) }

// cutsOff: its target is kept from others, and left to its work.
func (f *injection) cutsOff() bool { return f.class == history.FaultCuts && !f.unsubscribes() }

// keepsFromReplicas: writes of a master do not reach replicas, or reach them late; clients still reach it.
func (f *injection) keepsFromReplicas() bool {
	return f.actsOn(history.ObjectReplication) || f.does(history.FaultCuts, history.ObjectTraffic)
}

// delaysReplies: servers reply late.
func (f *injection) delaysReplies() bool {
	if f.class == history.FaultPauses {
		return !isClient(f.target)
	}
	return f.does(history.FaultDelays, history.ObjectTraffic, history.ObjectPackets, history.ObjectReplies,
		history.ObjectFsyncs)
}

// delaysFsyncs: writes reach the disk of a server late.
func (f *injection) delaysFsyncs() bool { return f.actsOn(history.ObjectFsyncs) }

// losesReply: a reply may not come or come late, so that a client may send its request again.
func (f *injection) losesReply() bool {
	return f.actsOn(history.ObjectReplies, history.ObjectPackets) || f.does(history.FaultDrops, history.ObjectConnections)
}

// unsubscribes: clients lost subscriptions, or could not subscribe.
func (f *injection) unsubscribes() bool { return f.actsOn(history.ObjectSubscriptions) }

// isClient reports whether a target is a client.
func isClient(target string) bool {
	_, is := cluster.ClientNumber(target)
	return is
}
