package property

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Progress shows how far a judgement is. Pass it in [Options], and read it on any goroutine while [Judge] runs. The
// zero value is ready. It serves one judgement at a time.
type Progress struct {
	done, total atomic.Int64 // operations, once for the holds and once for each property
	mu          sync.Mutex
	doing       []string
}

// Done is how much work is done, in operations: each counts once for finding the holds and once for every property.
// The total is 0 before the judgement begins.
func (p *Progress) Done() (done, total int64) { return p.done.Load(), p.total.Load() }

// Doing names the properties that are being judged, and the search that is running.
func (p *Progress) Doing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.doing, ", ")
}

// Begin begins a judgement. Like all methods below it does nothing if p is nil.
func (p *Progress) Begin(total int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing = nil
	p.done.Store(0)
	p.total.Store(total)
}

// Step runs work under a name; it counts as that many operations.
func (p *Progress) Step(name string, operations int, work func()) {
	if p == nil {
		work()
		return
	}
	p.mu.Lock()
	p.doing = append(p.doing, name)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.doing, name); i >= 0 {
			p.doing = slices.Delete(p.doing, i, i+1)
		}
		p.done.Add(int64(operations))
	}()
	work()
}
