package workloads

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
)

// sharedSequences are about readers and writers.
func sharedSequences() []sequence {
	needs := client.Capabilities{client.SharesReads}
	return []sequence{
		{name: "readers", needs: needs, run: holding((*mix).reads, readers)},
		{name: "downgrade", needs: needs.With(client.CanDowngrade), run: holding((*mix).writes, downgrade)},
		{name: "upgrade", needs: needs.With(client.CanDowngrade), run: holding((*mix).reads, upgrade)},
		{name: "write after a read", needs: needs, run: holding((*mix).reads, writeAfterRead)},
		{name: "nested reads", needs: needs.With(client.Reentrant), run: holding((*mix).reads, nestedReads)},
		{name: "dead reader", needs: needs.With(client.ReportsLoss), run: deadReader},
		// Its loss has to be reported with the mode.
		{name: "write that ends inside a read", run: deadWrite,
			needs: needs.With(client.CanDowngrade, client.ReportsLoss, client.InspectsOwner)},
	}
}

// reading is a request to read.
func (m *mix) reading(owner string, lease time.Duration) client.Acquire {
	a := m.writing(owner, lease)
	a.Mode = "read"
	return a
}

// readVisit is visit for reading.
func (m *mix) readVisit() { m.tryOnce(m.reads()) }

// writeVisit is visit for writing.
func (m *mix) writeVisit() { m.tryOnce(m.writes()) }

// readers are two owners that read at once. A writer has to wait for both.
func readers(m *mix, first Hold) {
	second := m.try(m.reads())
	m.work(first)
	m.writeVisit()
	m.release(first)
	m.writeVisit()
	if second.held() {
		m.wait()
		m.release(second)
		m.writeVisit()
	}
}

// downgrade reads inside a write, and still reads after it has released the write: readers may join then.
func downgrade(m *mix, write Hold) {
	m.readVisit()
	read := m.enter(m.reading(write.Owner, m.lease()))
	m.work(write)
	m.readVisit()
	if !m.leave(write) || !read.held() {
		return
	}
	m.readVisit()
	m.writeVisit()
	m.wait()
	m.release(read)
	m.writeVisit()
}

// writeAfterRead requests to write after it has stopped reading, while another owner may still read: only that reader
// may be the reason for a refusal, not its own former read.
func writeAfterRead(m *mix, read Hold) {
	other := m.try(m.reads())
	m.wait()
	if !m.leave(read) {
		return
	}
	m.tryOnce(m.writing(read.Owner, m.lease()))
	m.release(other)
	m.tryOnce(m.writing(read.Owner, m.lease()))
}

// upgrade requests to write while it reads, which would wait for itself forever. Another owner may read as well.
func upgrade(m *mix, read Hold) {
	other := m.sometimes(m.try, m.reads)
	if write := m.enter(m.writing(read.Owner, m.lease())); !m.leave(write) {
		return
	}
	m.readVisit()
	m.wait()
	m.release(read)
	if other.held() {
		m.writeVisit()
		m.release(other)
	}
}

// nestedReads reads twice for one owner.
func nestedReads(m *mix, h Hold) {
	again := m.enter(m.again(h))
	if m.wait(); again.held() {
		if !m.leave(h) {
			return
		}
		m.writeVisit()
		m.wait()
	}
	m.release(h)
	m.writeVisit()
}

// deadReader leaves a reader to its short lease while another one continues to read, and perhaps renews its own lease.
// Long after both have ended, a writer is granted the lock.
func deadReader(m *mix) {
	lease := m.short()
	dead := m.acquire(m.reading(m.owner(), lease))
	if !dead.held() {
		return
	}
	if h := m.try(m.reading(m.owner(), 2*beyondSlack)); h.held() {
		if m.Can.Has(client.CanRenew) && m.chance(2) {
			m.Session.Renew(m.ctx, h, 3*beyondSlack)
		}
		if m.pause(lease); m.Can.Has(client.InspectsOwner) {
			m.pause(beyondSlack)
			m.ask(dead)
			m.ask(h)
		}
		m.writeVisit()
		m.release(h)
	}
	m.pause(beyondSlack)
	m.writeVisit()
}

// deadWrite reads inside a write whose lease ends long before: readers may join then, and writers may not.
func deadWrite(m *mix) {
	owner, lease := m.owner(), m.short()
	if write := m.acquire(m.writing(owner, lease)); !write.held() {
		return
	}
	read := m.try(m.reading(owner, 3*beyondSlack))
	if !read.held() {
		return
	}
	m.readVisit()
	m.pause(lease + beyondSlack)
	m.readVisit()
	m.writeVisit()
	m.release(read)
	m.writeVisit()
}
