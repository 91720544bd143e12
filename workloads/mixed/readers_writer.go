package mixed

import (
	"time"

	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// sharedSequences are about readers and writers.
func sharedSequences() []sequence {
	needs := promise.ReadWrite
	return []sequence{
		{name: "readers", needs: needs, run: holding((*mix).NewRead, readers)},
		{name: "downgrade", needs: needs.With(promise.Downgrade), run: holding((*mix).NewWrite, downgrade)},
		{name: "upgrade", needs: needs.With(promise.Downgrade), run: holding((*mix).NewRead, upgrade)},
		{name: "write after a read", needs: needs, run: holding((*mix).NewRead, writeAfterRead)},
		{name: "nested reads", needs: needs.With(promise.Reentrant), run: holding((*mix).NewRead, nestedReads)},
		{name: "dead reader", needs: needs.With(promise.ReportsLoss), run: deadReader},
		// Its loss has to be reported with the mode.
		{name: "write that ends inside a read", run: deadWrite,
			needs: needs.With(promise.Downgrade | promise.ReportsLoss | promise.InspectOwner)},
	}
}

// readVisit is visit for reading.
func (m *mix) readVisit() { m.tryOnce(m.NewRead()) }

// writeVisit is visit for writing.
func (m *mix) writeVisit() { m.tryOnce(m.NewWrite()) }

// readers are two owners that read at once. A writer has to wait for both.
func readers(m *mix, first session.Hold) {
	second := m.Try(m.NewRead())
	m.work(first)
	m.writeVisit()
	m.Release(first)
	m.writeVisit()
	if second.Granted() {
		m.PauseInHold()
		m.Release(second)
		m.writeVisit()
	}
}

// downgrade reads inside a write, and still reads after it has released the write: readers may join then.
func downgrade(m *mix, write session.Hold) {
	m.readVisit()
	read := m.enter(m.Reading(write.Owner, m.Lease()))
	m.work(write)
	m.readVisit()
	if !m.leave(write) || !read.Granted() {
		return
	}
	m.readVisit()
	m.writeVisit()
	m.PauseInHold()
	m.Release(read)
	m.writeVisit()
}

// writeAfterRead requests to write after it has stopped reading, while another owner may still read: only that reader
// may be the reason for a refusal, not its own former read.
func writeAfterRead(m *mix, read session.Hold) {
	other := m.Try(m.NewRead())
	m.PauseInHold()
	if !m.leave(read) {
		return
	}
	m.tryOnce(m.Writing(read.Owner, m.Lease()))
	m.Release(other)
	m.tryOnce(m.Writing(read.Owner, m.Lease()))
}

// upgrade requests to write while it reads, which would wait for itself forever. Another owner may read as well.
func upgrade(m *mix, read session.Hold) {
	other := m.sometimes(m.Try, m.NewRead)
	if write := m.enter(m.Writing(read.Owner, m.Lease())); !m.leave(write) {
		return
	}
	m.readVisit()
	m.PauseInHold()
	m.Release(read)
	if other.Granted() {
		m.writeVisit()
		m.Release(other)
	}
}

// nestedReads reads twice for one owner.
func nestedReads(m *mix, h session.Hold) {
	again := m.enter(m.again(h))
	if m.PauseInHold(); again.Granted() {
		if !m.leave(h) {
			return
		}
		m.writeVisit()
		m.PauseInHold()
	}
	m.Release(h)
	m.writeVisit()
}

// deadReader leaves a reader to its short lease while another one continues to read, and perhaps renews its own lease.
// Long after both have ended, a writer is granted the lock.
func deadReader(m *mix) {
	lease := m.ShortLease()
	dead := m.Acquire(m.Reading(m.NewOwner(), lease))
	if !dead.Granted() {
		return
	}
	granted := time.Now()
	if h := m.Try(m.Reading(m.NewOwner(), 2*workload.BeyondSlack)); h.Granted() {
		if m.Can.Has(promise.Renew) && m.Chance(2) {
			m.Session.Renew(m.Context, h, 3*workload.BeyondSlack)
		}
		if m.Pause(lease); m.Can.Has(promise.InspectOwner) {
			m.Pause(workload.BeyondSlack)
			m.ask(dead)
			m.ask(h)
		}
		m.writeVisit()
		m.Release(h)
	}
	m.Pause(workload.BeyondSlack)
	m.ReleaseRenewed(dead, granted)
	m.writeVisit()
}

// deadWrite reads inside a write whose lease ends long before: readers may join then, and writers may not.
func deadWrite(m *mix) {
	owner, lease := m.NewOwner(), m.ShortLease()
	if write := m.Acquire(m.Writing(owner, lease)); !write.Granted() {
		return
	}
	read := m.Try(m.Reading(owner, 3*workload.BeyondSlack))
	if !read.Granted() {
		return
	}
	m.readVisit()
	m.Pause(lease + workload.BeyondSlack)
	m.readVisit()
	m.writeVisit()
	m.Release(read)
	m.writeVisit()
}
