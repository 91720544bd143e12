package sim

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// disk holds a server's append-only file, if it has one. (Snapshots are not simulated: without appendonly a server
// starts empty, as redis-server does with an empty "save" option.)
type disk struct {
	on     bool   // appendonly yes
	policy string // appendfsync: always, everysec, no

	base    *image // written by the last rewrite
	records []record
	synced  int   // records that were fsynced
	second  int64 // of the last fsync (aof_last_fsync)

	slow slowness
}

// Disk is the disk of the server.
func (n *node) Disk() network.Disk { return &n.disk }

// record is the writes of one command, script or transaction.
type record struct {
	at   int64 // instant
	db   int
	cmds [][][]byte
}

const (
	// rewriteAt is the number of records at which the server rewrites its file.
	rewriteAt = 50_000

	// cronEvery is how often a server checks whether an fsync is due (hz 10).
	cronEvery = int64(100 * time.Millisecond)
)

// append writes a record. With everysec Redis fsyncs immediately if it has not done so in this second, else when
// the next second has begun (flushAppendOnlyFile): a write after an idle second is durable immediately.
func (d *disk) append(r record) {
	if !d.on || len(r.cmds) == 0 {
		return
	}
	d.settle(r.at)
	d.records = append(d.records, r)
	if d.isSlow() {
		d.slow.unwritten++
		return // see flush
	}
	if now := r.at / int64(time.Second); d.policy == "always" || d.policy == "everysec" && now > d.second {
		d.synced, d.second = len(d.records), now
	}
}

// settle computes the data that are durable now.
func (d *disk) settle(now int64) {
	if d.isSlow() {
		return
	}
	switch d.policy {
	case "always":
		d.synced = len(d.records)
	case "no":
		for d.synced < len(d.records) && d.records[d.synced].at <= now-network.FlushAfter {
			d.synced++
		}
	default:
		second := (d.second + 1) * int64(time.Second)
		due := (second + cronEvery - 1) / cronEvery * cronEvery
		if d.synced < len(d.records) && now >= due {
			d.synced, d.second = len(d.records), due/int64(time.Second)
		}
	}
}

// full reports whether the file is due for a rewrite.
func (d *disk) full() bool { return len(d.records) >= rewriteAt }

// rewrite replaces the file by a snapshot, which is fsynced before the rename.
func (d *disk) rewrite(snapshot *image) {
	if d.on {
		d.base, d.records, d.synced = snapshot, nil, 0
		d.slow.unwritten, d.slow.covers = 0, 0
	}
}

// PowerOff drops data that are not durable.
func (d *disk) PowerOff(now int64) {
	d.settle(now)
	clear(d.records[d.synced:])
	d.records = d.records[:d.synced]
}

// Wipe empties the disk of a server that does not run.
func (d *disk) Wipe() { d.base, d.records, d.synced = nil, nil, 0 }
