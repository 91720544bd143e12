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
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// Pool is a set of worker processes. A worker that dies is restarted, and its run fails. Close ends all of them. Do
// may be called from several goroutines.
type Pool struct {
	command []string
	env     []string
	dir     *ledger.DataDir // of the standard error of workers; chaos clean removes it if this program is killed

	idle chan *worker

	mu      sync.Mutex
	running map[*worker]bool
}

// worker is one process; nil proc: it is not running.
type worker struct {
	number int
	proc   *child.Process
	in     *json.Encoder
	out    *bufio.Reader
}

// maxResult bounds one line of a worker.
const maxResult = 256 << 20

// Open makes a pool of n workers, each of which runs command, a program that calls [Serve]. env is added to the
// environment of this program. Workers are started when they are needed.
func Open(command []string, n int, env ...string) (*Pool, error) {
	if len(command) == 0 || n < 1 {
		return nil, errors.New("opening a pool of workers: it needs a command and at least one worker")
	}
	var unlisted *ledger.Ledger // a sweep recognizes the directory by itself
	dir, err := unlisted.NewDataDir()
	if err != nil {
		return nil, fmt.Errorf("opening a pool of workers: %w", err)
	}
	p := &Pool{command: command, env: env, dir: dir, idle: make(chan *worker, n), running: map[*worker]bool{}}
	for i := range n {
		p.idle <- &worker{number: i}
	}
	return p, nil
}

// Do makes a run in a worker. If the worker dies, the result has Failure set. The error is about the pool: no worker
// can be started, or ctx has ended.
func (p *Pool) Do(ctx context.Context, j Job) (Result, error) {
	var w *worker
	select {
	case w = <-p.idle:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	defer func() { p.idle <- w }()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err := p.start(w); err != nil {
		return Result{}, err
	}
	stop := context.AfterFunc(ctx, func() { p.kill(w) })
	defer stop()
	r, err := w.run(j)
	if err == nil {
		return r, nil
	}
	p.kill(w)
	stderr, exit := p.stderr(w), w.proc.Wait()
	w.proc = nil
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	why := fmt.Sprintf("the worker died: %v", err)
	if errors.Is(err, io.EOF) && exit != nil { // it exited by itself
		why = fmt.Sprintf("the worker died (%v)", exit)
	}
	if stderr != "" {
		why += ": " + stderr
	}
	return Result{Seed: j.Seed, Variation: j.Variation, Failure: why}, nil
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
	p.running[w] = true
	return nil
}

func (p *Pool) kill(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[w] {
		_ = w.proc.Kill()
		delete(p.running, w)
	}
}

func (p *Pool) log(w *worker) string {
	return filepath.Join(p.dir.Path, fmt.Sprintf("worker-%d.log", w.number))
}

// stderr is the standard error of w, up to the length of a watchdog's advice or of the head of a panic.
func (p *Pool) stderr(w *worker) string {
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
	for w := range p.running { // in any order: all end
		_ = w.proc.Kill()
	}
	p.running = map[*worker]bool{}
	p.mu.Unlock()
	if err := p.dir.Remove(); err != nil {
		return fmt.Errorf("closing a pool of workers: %w", err)
	}
	return nil
}

func (w *worker) run(j Job) (Result, error) {
	var r Result
	if err := w.in.Encode(j); err != nil {
		return r, err
	}
	var line []byte
	for {
		part, more, err := w.out.ReadLine()
		if err != nil {
			return r, err
		}
		if line = append(line, part...); !more {
			break
		}
		if len(line) > maxResult {
			return r, fmt.Errorf("its result has more than %d bytes", maxResult)
		}
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("reading its result: %w", err)
	}
	return r, nil
}
