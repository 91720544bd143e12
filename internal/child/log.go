package child

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
)

// drainWait is how long the log of a process waits, after its exit, for a process that still has the pipe open.
const drainWait = time.Second

// lastBytes is how much of the end of a log [Process.LastLine] looks at.
const lastBytes = 4096

// cappedLog copies a pipe to a file, up to a number of bytes, and counts the rest.
type cappedLog struct {
	pipe *os.File
	file *os.File
	left int64
	more int64         // bytes that were not written
	done chan struct{} // closed at the end of the pipe

	mu  sync.Mutex
	end []byte // the last bytes
}

// newCappedLog returns the log and the end of the pipe that the process writes to.
func newCappedLog(file *os.File, most int64) (*cappedLog, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &cappedLog{pipe: r, file: file, left: most, done: make(chan struct{})}, w, nil
}

// copy reads until the pipe ends. It never stops reading earlier: a full pipe would block the process.
func (l *cappedLog) copy() {
	defer close(l.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := l.pipe.Read(buffer)
		l.write(buffer[:n])
		if err != nil {
			break
		}
	}
	if l.more > 0 {
		_, _ = fmt.Fprintf(l.file, "\n… %d bytes more\n", l.more)
	}
	l.close()
}

func (l *cappedLog) write(text []byte) {
	keep := min(int64(len(text)), l.left)
	l.left -= keep
	n, _ := l.file.Write(text[:keep]) // a full disk must not end the process
	l.more += int64(len(text) - n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, text[max(0, len(text)-lastBytes):]...)
	l.end = l.end[max(0, len(l.end)-lastBytes):]
}

func (l *cappedLog) close() {
	_ = l.pipe.Close()
	_ = l.file.Close()
}

// drain waits, after the exit of the process, until the pipe ends.
func (l *cappedLog) drain() {
	_ = l.pipe.SetReadDeadline(time.Now().Add(drainWait))
	<-l.done
}

// LastLine is the last line of standard error so far that is not empty; "" without Spec.MaxStderr.
func (p *Process) LastLine() string {
	if p.log == nil {
		return ""
	}
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	text := bytes.TrimSpace(p.log.end)
	return string(bytes.TrimSpace(text[bytes.LastIndexByte(text, '\n')+1:]))
}

// Status is how the process ended, such as "exit status 3", or "still running".
func (p *Process) Status() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		return "still running"
	}
	return p.state.String()
}
