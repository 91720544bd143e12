package lossydisk

import (
	"context"
	"syscall"
	"time"
)

// slowness is how a disk delays fsyncs. Disk.mu guards it.
type slowness struct {
	each      time.Duration // that every fsync takes; 0: it is not delayed
	count     int           // fsyncs that were delayed
	recovered chan struct{} // closed when the disk is fast again
	abandoned chan struct{} // closed when the program that waits is about to be killed
}

// Slow makes every fsync that starts from now on take that long. With 0 the disk is fast again, and the fsyncs that
// wait end.
func (d *Disk) Slow(each time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.slow
	if s.recovered != nil {
		close(s.recovered)
		s.recovered = nil
	}
	s.each = each
	if each > 0 {
		s.recovered = make(chan struct{})
	}
}

// Slowed is the number of fsyncs that were delayed so far, with those that still wait.
func (d *Disk) Slowed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow.count
}

// Abandon is called before the program that uses the disk is killed: an fsync that waits ends without effect when the
// signal interrupts it. A process that waits for a reply of FUSE cannot exit.
func (d *Disk) Abandon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slow.abandoned != nil {
		close(d.slow.abandoned)
		d.slow.abandoned = nil
	}
}

// delay waits as long as an fsync takes. ctx ends when a signal interrupts it: a SIGSTOP does too, and must not make an
// fsync fail.
func (d *Disk) delay(ctx context.Context) syscall.Errno {
	d.mu.Lock()
	s := &d.slow
	each, recovered := s.each, s.recovered
	if each > 0 {
		s.count++
		if s.abandoned == nil {
			s.abandoned = make(chan struct{})
		}
	}
	abandoned := s.abandoned
	d.mu.Unlock()
	if each == 0 {
		return 0
	}
	end := time.NewTimer(each)
	defer end.Stop()
	select {
	case <-end.C:
		return 0
	case <-recovered:
		return 0
	case <-abandoned:
	}
	select {
	case <-end.C:
	case <-recovered:
	case <-ctx.Done():
		return syscall.EINTR
	}
	return 0
}
