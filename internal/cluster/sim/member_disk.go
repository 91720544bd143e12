package sim

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// memberDisk is what a ZooKeeper server finds when it starts. The epochs are files that are fsynced when they are
// written, forceSync or not. An fsync takes no time.
type memberDisk struct {
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
func (d *memberDisk) append(now int64, x znode.Txn) {
	d.log = append(d.log, logged{now, x})
	d.settle(now)
}

// settle computes what is durable now.
func (d *memberDisk) settle(now int64) {
	if d.force {
		d.synced = len(d.log)
		return
	}
	for d.synced < len(d.log) && d.log[d.synced].at <= now-flushAfter {
		d.synced++
	}
}

// load is the data on the disk.
func (d *memberDisk) load() *znode.Tree {
	t := znode.New()
	if d.base != nil {
		t = d.base.Clone()
	}
	d.replay(t)
	return t
}

// replay applies what is in the log and not in t.
func (d *memberDisk) replay(t *znode.Tree) {
	for _, l := range d.log[d.after(t.Zxid()):] {
		t.Apply(l.txn)
	}
}

// after is the index of the first transaction after zxid.
func (d *memberDisk) after(zxid int64) int {
	return sort.Search(len(d.log), func(i int) bool { return d.log[i].txn.Zxid > zxid })
}

// first is the zxid before the log.
func (d *memberDisk) first() int64 {
	if d.base == nil {
		return 0
	}
	return d.base.Zxid()
}

// truncate drops the transactions after zxid.
func (d *memberDisk) truncate(zxid int64) {
	d.log = slices.Clone(d.log[:d.after(zxid)])
	d.synced = min(d.synced, len(d.log))
}

// powerOff drops what is not durable.
func (d *memberDisk) powerOff(now int64) {
	d.settle(now)
	d.log = slices.Clone(d.log[:d.synced])
}

func (d *memberDisk) wipe() { *d = memberDisk{force: d.force} }
