package sim

import "time"

// disk is what a server finds when it starts: its append-only file, if it has
// one. (Snapshots are not simulated: without appendonly, a server starts empty,
// as it does on real servers that are told "save ”".)
type disk struct {
	on     bool   // appendonly yes
	policy string // appendfsync: always, everysec, no

	base    *image // what a rewrite of the file has put in place of what was before it
	records []record
	synced  int   // so many records are safe from a power cut
	second  int64 // in which the file was last fsynced, as Redis counts (aof_last_fsync)
}

// record is what one command, script or transaction has written.
type record struct {
	at   int64 // instant
	db   int
	cmds [][][]byte
}

const (
	// rewriteAt is how many records make the server rewrite its file.
	rewriteAt = 50_000

	// cronEvery is how often a server looks whether an fsync is due (hz 10).
	cronEvery = int64(100 * time.Millisecond)

	// flushAfter is when the system writes what nobody has fsynced (Linux: dirty_expire_centisecs).
	flushAfter = int64(30 * time.Second)
)

// append writes a record at an instant. With everysec Redis fsyncs at once if it
// has not done so in this second, and else as soon as the next one has begun
// (flushAppendOnlyFile): so what follows a second of quiet is safe at once.
func (d *disk) append(r record) {
	if !d.on || len(r.cmds) == 0 {
		return
	}
	d.settle(r.at)
	d.records = append(d.records, r)
	if now := r.at / int64(time.Second); d.policy == "always" || d.policy == "everysec" && now > d.second {
		d.synced, d.second = len(d.records), now
	}
}

// settle works out what has become safe until now.
func (d *disk) settle(now int64) {
	switch d.policy {
	case "always":
		d.synced = len(d.records)
	case "no":
		for d.synced < len(d.records) && d.records[d.synced].at <= now-flushAfter {
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

// full says that the file should be rewritten.
func (d *disk) full() bool { return len(d.records) >= rewriteAt }

// rewrite replaces the file by a snapshot, which is fsynced before it counts.
func (d *disk) rewrite(snapshot *image) {
	if d.on {
		d.base, d.records, d.synced = snapshot, nil, 0
	}
}

// powerOff loses what is not safe.
func (d *disk) powerOff(now int64) {
	d.settle(now)
	clear(d.records[d.synced:])
	d.records = d.records[:d.synced]
}

func (d *disk) wipe() { d.base, d.records, d.synced = nil, nil, 0 }
