package explore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/internal/child"
)

// Pool is a set of worker processes. A worker that dies is started again, and
// the seed that it died of is told. Close ends all of them; Do may be called
// from several goroutines.
type Pool struct {
	command []string
	env     []string
	dir     string // for what workers say on standard error

	idle chan *worker

	mu  sync.Mutex
	all map[*worker]bool
}

// worker is one process; nil proc: it has to be started.
type worker struct {
	number int
	proc   *child.Process
	in     *json.Encoder
	out    *bufio.Reader
}

// maxAnswer bounds one line of a worker.
const maxAnswer = 256 << 20

// Open makes a pool of n workers, each of which runs command, which is a
// program that calls [Serve]. env is added to the environment of this program. A worker is started
// when there is work for it.
func Open(command []string, n int, env ...string) (*Pool, error) {
	if len(command) == 0 || n < 1 {
		return nil, errors.New("opening a pool of workers: it needs a command and at least one worker")
	}
	dir, err := os.MkdirTemp("", "lockchaos-explore-")
	if err != nil {
		return nil, fmt.Errorf("opening a pool of workers: %w", err)
	}
	p := &Pool{command: command, env: env, dir: dir, idle: make(chan *worker, n), all: map[*worker]bool{}}
	for i := range n {
		p.idle <- &worker{number: i}
	}
	return p, nil
}

// Do has a worker make the run. A run that took its worker with it is an answer
// with Failure set. The error is about the pool: no worker can be started, or ctx has ended.
func (p *Pool) Do(ctx context.Context, j Job) (Answer, error) {
	var w *worker
	select {
	case w = <-p.idle:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	defer func() { p.idle <- w }()
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	if err := p.start(w); err != nil {
		return Answer{}, err
	}
	stop := context.AfterFunc(ctx, func() { p.end(w) })
	defer stop()
	a, err := w.ask(j)
	if err == nil {
		return a, nil
	}
	p.end(w)
	said, ended := p.lastWords(w), w.proc.Wait()
	w.proc = nil
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	why := fmt.Sprintf("the worker died: %v", err)
	if errors.Is(err, io.EOF) && ended != nil { // by itself, and not because of what it said
		why = fmt.Sprintf("the worker died (%v)", ended)
	}
	if said != "" {
		why += ": " + said
	}
	return Answer{Seed: j.Seed, Variation: j.Variation, Failure: why}, nil
}

func (p *Pool) start(w *worker) error {
	if w.proc != nil {
		return nil
	}
	_ = os.Truncate(p.log(w), 0)
	proc, err := child.Start(child.Spec{
		Path: p.command[0], Args: p.command[1:], Pipes: true, Stderr: p.log(w),
		Env: append(append(os.Environ(), "GOMAXPROCS=1"), p.env...),
	})
	if err != nil {
		return fmt.Errorf("starting a worker: %w", err)
	}
	w.proc, w.in, w.out = proc, json.NewEncoder(proc.Stdin()), bufio.NewReaderSize(proc.Stdout(), 64<<10)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[w] = true
	return nil
}

func (p *Pool) end(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[w] {
		_ = w.proc.Kill()
		delete(p.all, w)
	}
}

func (p *Pool) log(w *worker) string {
	return filepath.Join(p.dir, fmt.Sprintf("worker-%d.log", w.number))
}

// lastWords is the end of what w said on standard error: enough for the advice
// of a watchdog, or the head of a panic.
func (p *Pool) lastWords(w *worker) string {
	const most = 2000
	text, err := os.ReadFile(p.log(w))
	if err != nil {
		return ""
	}
	s := strings.TrimSpace(string(text))
	if len(s) > most {
		s = s[:most] + " …"
	}
	return s
}

// Close ends every worker.
func (p *Pool) Close() error {
	p.mu.Lock()
	for w := range p.all { // order does not matter: all end
		_ = w.proc.Kill()
	}
	p.all = map[*worker]bool{}
	p.mu.Unlock()
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("closing a pool of workers: %w", err)
	}
	return nil
}

func (w *worker) ask(j Job) (Answer, error) {
	var a Answer
	if err := w.in.Encode(j); err != nil {
		return a, err
	}
	var line []byte
	for {
		part, more, err := w.out.ReadLine()
		if err != nil {
			return a, err
		}
		if line = append(line, part...); !more {
			break
		}
		if len(line) > maxAnswer {
			return a, errors.New("its answer is too long")
		}
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("reading its answer: %w", err)
	}
	return a, nil
}
