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
	abandoned chan struct{} // see leaving; nil: nobody has asked for it
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

// Slowed is the number of fsyncs that were delayed so far, with waiting ones.
func (d *Disk) Slowed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow.count
}

// Abandon is called before the program that uses the disk is killed: an fsync that waits ends without effect when the
// signal interrupts it, even if it begins before the signal. A process that waits for a reply of FUSE cannot exit. end
// is called when the program has exited.
func (d *Disk) Abandon() (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.slow.leaving())
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.slow.abandoned = nil
	}
}

// leaving is closed when the program that uses the disk is about to be killed.
func (s *slowness) leaving() chan struct{} {
	if s.abandoned == nil {
		s.abandoned = make(chan struct{})
	}
	return s.abandoned
}

// delay waits as long as an fsync takes. ctx ends when a signal interrupts it: a SIGSTOP does too, and must not make an
// fsync fail.
func (d *Disk) delay(ctx context.Context) syscall.Errno {
	d.mu.Lock()
	s := &d.slow
	each, recovered, abandoned := s.each, s.recovered, s.leaving()
	if each > 0 {
		s.count++
	}
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
