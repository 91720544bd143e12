package workloads

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
)

// sharedSequences are about readers and writers.
func sharedSequences() []sequence {
	needs := client.Capabilities{client.SharesReads}
	return []sequence{
		{name: "readers", needs: needs, run: readers},
		{name: "downgrade", needs: needs.With(client.CanDowngrade), run: downgrade},
		{name: "upgrade", needs: needs.With(client.CanDowngrade), run: upgrade},
		{name: "write after a read", needs: needs, run: writeAfterRead},
		{name: "nested reads", needs: needs.With(client.Reentrant), run: nestedReads},
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
func (m *mix) readVisit() { m.tryOnce(m.reading(m.owner(), m.lease())) }

// writeVisit is visit for writing.
func (m *mix) writeVisit() { m.tryOnce(m.writing(m.owner(), m.lease())) }

// readers are two owners that read at once. A writer has to wait for both.
func readers(m *mix) {
	first, ok := m.acquire(m.reading(m.owner(), m.lease()))
	if !ok {
		return
	}
	second, both := m.try(m.reading(m.owner(), m.lease()))
	m.work(first)
	m.writeVisit()
	m.Session.Release(m.ctx, first)
	m.writeVisit()
	if both {
		m.wait()
		m.Session.Release(m.ctx, second)
		m.writeVisit()
	}
}

// downgrade reads inside a write, and still reads after it has released the write: readers may join then.
func downgrade(m *mix) {
	owner := m.owner()
	write, ok := m.acquire(m.writing(owner, m.lease()))
	if !ok {
		return
	}
	m.readVisit()
	read, ok := m.enter(m.reading(owner, m.lease()))
	m.work(write)
	m.readVisit()
	if !m.leave(write) || !ok {
		return
	}
	m.readVisit()
	m.writeVisit()
	m.wait()
	m.Session.Release(m.ctx, read)
	m.writeVisit()
}

// writeAfterRead requests to write after it has stopped reading, while another owner may still read: only that reader
// may be the reason for a refusal, not its own former read.
func writeAfterRead(m *mix) {
	owner := m.owner()
	read, ok := m.acquire(m.reading(owner, m.lease()))
	if !ok {
		return
	}
	other, both := m.try(m.reading(m.owner(), m.lease()))
	m.wait()
	if !m.leave(read) {
		return
	}
	m.tryOnce(m.writing(owner, m.lease()))
	if both {
		m.Session.Release(m.ctx, other)
	}
	m.tryOnce(m.writing(owner, m.lease()))
}

// upgrade requests to write while it reads, which would wait for itself forever. Another owner may read as well.
func upgrade(m *mix) {
	owner := m.owner()
	read, ok := m.acquire(m.reading(owner, m.lease()))
	if !ok {
		return
	}
	other, both := Hold{}, false
	if m.chance(2) {
		other, both = m.try(m.reading(m.owner(), m.lease()))
	}
	if write, ok := m.enter(m.writing(owner, m.lease())); ok && !m.leave(write) {
		return
	}
	m.readVisit()
	m.wait()
	m.Session.Release(m.ctx, read)
	if both {
		m.writeVisit()
		m.Session.Release(m.ctx, other)
	}
}

// nestedReads reads twice for one owner.
func nestedReads(m *mix) {
	a := m.reading(m.owner(), m.lease())
	h, ok := m.acquire(a)
	if !ok {
		return
	}
	_, again := m.enter(a)
	m.wait()
	if again {
		if !m.leave(h) {
			return
		}
		m.writeVisit()
		m.wait()
	}
	m.Session.Release(m.ctx, h)
	m.writeVisit()
}

// deadReader leaves a reader to its short lease while another one continues to read, and perhaps renews its own lease.
// Long after both have ended, a writer is granted the lock.
func deadReader(m *mix) {
	lease := m.short()
	dead, ok := m.acquire(m.reading(m.owner(), lease))
	if !ok {
		return
	}
	if h, ok := m.try(m.reading(m.owner(), 2*beyondSlack)); ok {
		if m.Can.Has(client.CanRenew) && m.chance(2) {
			m.Session.Renew(m.ctx, h, 3*beyondSlack)
		}
		if m.pause(lease); m.Can.Has(client.InspectsOwner) {
			m.pause(beyondSlack)
			m.ask(dead)
			m.ask(h)
		}
		m.writeVisit()
		m.Session.Release(m.ctx, h)
	}
	m.pause(beyondSlack)
	m.writeVisit()
}

// deadWrite reads inside a write whose lease ends long before: readers may join then, and writers may not.
func deadWrite(m *mix) {
	owner, lease := m.owner(), m.short()
	if _, ok := m.acquire(m.writing(owner, lease)); !ok {
		return
	}
	read, ok := m.try(m.reading(owner, 3*beyondSlack))
	if !ok {
		return
	}
	m.readVisit()
	m.pause(lease + beyondSlack)
	m.readVisit()
	m.writeVisit()
	m.Session.Release(m.ctx, read)
	m.writeVisit()
}
