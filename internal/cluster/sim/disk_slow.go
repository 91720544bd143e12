package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// slowness is the state of a disk whose fsyncs take time. Without it an fsync takes none, see disk.append.
type slowness struct {
	each   int64 // how long every fsync takes
	fsyncs int   // how many were delayed so far

	unwritten int   // records that are only in the server's memory (aof_buf)
	covers    int   // records that the fsync in progress makes durable; 0: none is in progress
	ends      int64 // instant of its end
	postponed int64 // the second since which a write waits for it, plus one (aof_flush_postponed_start); 0: none waits
	delayed   int   // writes that have blocked the server (aof_delayed_fsync)
	cron      bool  // a flush is planned
}

// postponedFor is for how many seconds a write waits for an fsync in progress, before it blocks the server.
const postponedFor = 2

// isSlow reports whether fsyncs take time, or a slow one is in progress. With appendfsync no the server never waits.
func (d *disk) isSlow() bool {
	return d.on && d.policy != "no" && (d.slow.each > 0 || d.slow.covers > 0 || d.slow.unwritten > 0)
}

// forget drops records that were only in the memory of a server that has ended.
func (d *disk) forget() {
	d.records = d.records[:len(d.records)-d.slow.unwritten]
	d.slow = slowness{each: d.slow.each, fsyncs: d.slow.fsyncs}
}

// write moves everything to the page cache.
func (d *disk) write() { d.slow.unwritten, d.slow.postponed = 0, 0 }

// flush is flushAppendOnlyFile of Redis, which runs before the replies are sent, and in serverCron. It reports whether
// an fsync begins, and whether the server waits until the end of the fsync in progress.
func (d *disk) flush(now int64) (begins, waits bool) {
	s := &d.slow
	if d.policy == "always" {
		begins = s.unwritten > 0
		d.write()
		return begins, begins
	}
	second := now / int64(time.Second)
	if s.unwritten > 0 && s.covers > 0 {
		if s.postponed == 0 {
			s.postponed = second + 1
		}
		if second+1-s.postponed < postponedFor {
			return false, false
		}
		s.delayed++
		d.second = second
		return false, true
	}
	d.write()
	if s.covers > 0 || d.synced == len(d.records) || second <= d.second {
		return false, false
	}
	d.second = second
	return true, false
}

// flushDisk flushes a slow disk.
func (n *node) flushDisk() {
	d := &n.disk
	if n.Blocked || !d.isSlow() {
		return
	}
	begins, waits := d.flush(n.World.Now())
	if begins && d.slow.each == 0 {
		d.synced, waits = len(d.records), false
	} else if begins {
		d.slow.covers, d.slow.ends = len(d.records), n.World.Now()+d.slow.each
		d.slow.fsyncs++
		n.awaitDisk()
	}
	n.Blocked = waits
	if waits || d.slow.cron || d.slow.unwritten == 0 && d.synced == len(d.records) {
		return
	}
	d.slow.cron = true
	n.At((n.World.Now()/cronEvery+1)*cronEvery, func() {
		d.slow.cron = false
		n.done()
	})
}

// awaitDisk plans the end of the fsync in progress. The kernel completes it even if the server is stopped.
func (n *node) awaitDisk() {
	t := &network.Task{Host: &n.Host, Life: n.Life, Kernel: true, Do: func() {
		if d := &n.disk; d.slow.covers > 0 && n.World.Now() >= d.slow.ends {
			d.synced, d.slow.covers = d.slow.covers, 0
			n.unblock()
		}
	}}
	t.Schedule(n.disk.slow.ends)
}

// unblock resumes a server that has waited for its disk.
func (n *node) unblock() {
	if !n.Blocked {
		return
	}
	n.Blocked = false
	n.disk.write()
	if n.Paused {
		n.Deferred = append(network.Waiters{&network.Task{Host: &n.Host, Life: n.Life, Do: n.done}}, n.Deferred...)
		return
	}
	n.done() // executed commands are replied to before it executes more
	n.Proceed()
}

// SlowDisk makes each fsync of node that starts from now on take as long as each.
func (c *Cluster) SlowDisk(ctx context.Context, name string, each time.Duration) error {
	return c.withNode(ctx, "slowing the disk of", name, func(n *node) error {
		d := &n.disk
		d.settle(c.world.Now())
		d.slow.each = int64(each)
		if each == 0 && d.slow.covers > 0 {
			d.slow.ends = c.world.Now() + 1
			n.awaitDisk()
		}
		return nil
	})
}

// SlowFsyncs is how many fsyncs of node were delayed so far.
func (c *Cluster) SlowFsyncs(ctx context.Context, name string) (fsyncs int, err error) {
	err = c.withNode(ctx, "counting the fsyncs of", name, func(n *node) error {
		fsyncs = n.disk.slow.fsyncs
		return nil
	})
	return fsyncs, err
}

// infoDisk is the report of INFO persistence about an append-only file; "": there is none.
func (n *node) infoDisk() string {
	d := &n.disk
	if !d.on {
		return ""
	}
	waiting := int64(0)
	for _, r := range d.records[len(d.records)-d.slow.unwritten:] {
		waiting += bytes(r.cmds)
	}
	return fmt.Sprintf("aof_buffer_length:%d\r\naof_pending_bio_fsync:%d\r\naof_delayed_fsync:%d\r\n",
		waiting, boolInt(d.slow.covers > 0), d.slow.delayed)
}
