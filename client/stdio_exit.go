package client

import (
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Kill kills the client's process.
func (c *StdioClient) Kill() error {
	c.stdio.exit.Do(func() { c.stdio.ended = ErrKilled })
	return c.stdio.proc.Kill()
}

// Killed is when Kill had sent its signal, after which the program executes nothing; zero: Kill was not called, or the
// process does not know.
func (c *StdioClient) Killed() time.Time {
	if p, ok := c.stdio.proc.(interface{ Killed() time.Time }); ok {
		return p.Killed()
	}
	return time.Time{}
}

// Err is why the process ended: ErrKilled, ErrExited with its exit status and the last line of its standard error, or
// ErrProtocol; nil while it runs.
func (c *StdioClient) Err() error { return c.stdio.reason() }

// Ending is how the client's process ended or "still running", and the last line of its standard error; both are "" if
// the process does not know.
func (c *StdioClient) Ending() (status, lastLine string) { return c.stdio.ending() }

func (s *Stdio) ending() (status, lastLine string) {
	if p, ok := s.proc.(interface{ Status() string }); ok {
		status = p.Status()
	}
	if p, ok := s.proc.(interface{ LastLine() string }); ok {
		lastLine = p.LastLine()
	}
	return status, lastLine
}

// exitWait is how long a process whose standard input or output has ended may take to exit before it is killed. The
// kernel closes the files of a process just before its exit, which may take long on a busy machine.
const exitWait = 2 * time.Second

// end ends a process that can no longer be talked to, and returns why it ended: how it exited, or else cause.
func (s *Stdio) end(cause string) error {
	s.exit.Do(func() {
		if p, ok := s.proc.(interface{ Done() <-chan struct{} }); ok {
			timer := time.NewTimer(exitWait)
			defer timer.Stop()
			select {
			case <-p.Done():
			case <-timer.C:
			}
		}
		running := s.proc.PID() != 0
		how, line := s.ending()
		if how == "" || running {
			how = cause
		}
		s.ended = fmt.Errorf("%w: %s", ErrExited, how)
		if line != "" {
			s.ended = fmt.Errorf("%w; standard error ends with %q", s.ended, format.Truncate(line, 300))
		}
		_ = s.proc.Kill()
	})
	return s.ended
}
