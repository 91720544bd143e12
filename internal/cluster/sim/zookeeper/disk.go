package zookeeper

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// disk has the data that a member finds when it starts. The epochs are files that are fsynced when they are written,
// forceSync or not. An fsync takes no time.
type disk struct {
	force             bool        // forceSync
	base              *znode.Tree // a snapshot of the leader; nil: the log begins with the first transaction
	log               []logged
	synced            int // transactions that were fsynced
	accepted, current int64
}

// logged is a transaction in the log.
type logged struct {
	at  int64 // instant
	txn znode.Txn
}

// append logs a transaction.
func (d *disk) append(now int64, x znode.Txn) {
	d.log = append(d.log, logged{now, x})
	d.settle(now)
}

// settle computes the data that are durable now.
func (d *disk) settle(now int64) {
	if d.force {
		d.synced = len(d.log)
		return
	}
	for d.synced < len(d.log) && d.log[d.synced].at <= now-network.FlushAfter {
		d.synced++
	}
}

// load is the data on the disk.
func (d *disk) load() *znode.Tree {
	t := znode.New()
	if d.base != nil {
		t = d.base.Clone()
	}
	d.replay(t)
	return t
}

// replay applies the transactions that are in the log and not in t.
func (d *disk) replay(t *znode.Tree) {
	for _, l := range d.log[d.after(t.Zxid()):] {
		t.Apply(l.txn)
	}
}

// after is the index of the first transaction after zxid.
func (d *disk) after(zxid int64) int {
	return sort.Search(len(d.log), func(i int) bool { return d.log[i].txn.Zxid > zxid })
}

// first is the zxid before the log.
func (d *disk) first() int64 {
	if d.base == nil {
		return 0
	}
	return d.base.Zxid()
}

// truncate drops the transactions after zxid.
func (d *disk) truncate(zxid int64) {
	d.log = slices.Clone(d.log[:d.after(zxid)])
	d.synced = min(d.synced, len(d.log))
}

// PowerOff drops data that are not durable.
func (d *disk) PowerOff(now int64) {
	d.settle(now)
	d.log = slices.Clone(d.log[:d.synced])
}

// Wipe empties the disk of a member that does not run.
func (d *disk) Wipe() { *d = disk{force: d.force} }
