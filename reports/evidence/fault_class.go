package evidence

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Questions about the kind of a fault, as the run recorded it. No fault is known here by its name.

// Does reports whether a fault is of that class and acts on one of the objects.
func (f *Fault) Does(class string, objects ...string) bool {
	return f.Class == class && slices.Contains(objects, f.Object)
}

// ActsOn reports whether a fault acts on one of the objects, in whatever way.
func (f *Fault) ActsOn(objects ...string) bool { return slices.Contains(objects, f.Object) }

// EndsProcess: the process of a server or a client ended, and was started again at once, later or never.
func (f *Fault) EndsProcess() bool {
	return f.Class == history.FaultKills || f.StartsAgain()
}

// StartsAgain: a process ended and was started again.
func (f *Fault) StartsAgain() bool {
	return f.Class == history.FaultRestarts || f.Class == history.FaultForgets
}

// Empties: a server was started again without its data.
func (f *Fault) Empties() bool { return f.Does(history.FaultForgets, history.ObjectData) }

// LosesUnsynced: a server was started again without the writes that it had not synced to its disk.
func (f *Fault) LosesUnsynced() bool { return f.Class == history.FaultForgets && !f.Empties() }

// RemovesKeys: a server no longer has keys of locks, or nodes of holders.
func (f *Fault) RemovesKeys() bool { return f.Does(history.FaultRemoves, history.ObjectKeys) }

// PlantsData: another program wrote to keys of locks.
func (f *Fault) PlantsData() bool { return f.Does(history.FaultPlants, history.ObjectKeys) }

// Duplicates: servers executed requests twice.
func (f *Fault) Duplicates() bool { return f.Class == history.FaultDuplicates }

// Skews: the clock of a server was set, or is too fast or too slow.
func (f *Fault) Skews() bool { return f.Class == history.FaultSkews }

// drifts: the clock of a server is too fast or too slow.
func (f *Fault) drifts() bool { return f.Does(history.FaultSkews, history.ObjectRate) }

// CutsOff: its target is kept from others, and left to its work.
func (f *Fault) CutsOff() bool { return f.Class == history.FaultCuts && !f.Unsubscribes() }

// KeepsFromReplicas: writes of a master do not reach replicas, or reach them late; clients still reach it.
func (f *Fault) KeepsFromReplicas() bool {
	return f.ActsOn(history.ObjectReplication) || f.Does(history.FaultCuts, history.ObjectTraffic)
}

// DelaysReplies: servers reply late.
func (f *Fault) DelaysReplies() bool {
	if f.Class == history.FaultPauses {
		return !IsClient(f.Target)
	}
	return f.Does(history.FaultDelays, history.ObjectTraffic, history.ObjectPackets, history.ObjectReplies,
		history.ObjectFsyncs)
}

// DelaysFsyncs: writes reach the disk of a server late.
func (f *Fault) DelaysFsyncs() bool { return f.ActsOn(history.ObjectFsyncs) }

// LosesReply: a reply may not come or come late, so that a client may send its request again.
func (f *Fault) LosesReply() bool {
	return f.ActsOn(history.ObjectReplies, history.ObjectPackets) || f.Does(history.FaultDrops, history.ObjectConnections)
}

// Unsubscribes: clients lost subscriptions, or could not subscribe.
func (f *Fault) Unsubscribes() bool { return f.ActsOn(history.ObjectSubscriptions) }

// IsClient reports whether a target is a client.
func IsClient(target string) bool {
	_, is := cluster.ClientNumber(target)
	return is
}
