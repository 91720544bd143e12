// Package search searches for a legal order of operations on a lock: one in which each operation has its effect at one
// instant between its call and its return, as a model of that kind of lock allows it. Porcupine searches; this
// package has models of locks that know the owner, and a separate process with bounded memory for long searches.
//
// Read [Op] and [Model] first, then [Searcher].
package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Limits of one search.
const (
	quickSearch   = 50 * time.Millisecond // in this process, before a child process is started
	noChildSearch = time.Second           // the same for more than noChildOps, without a child process
	noChildOps    = 500
	searchMemory  = 1 << 30 // bytes that a child process may use
)

// errMemory is the error of [Serve] if a search exceeds its memory limit.
var errMemory = fmt.Errorf("searching for a legal order: more than %d MiB of memory needed", searchMemory>>20)

// Job asks whether operations have a legal order. It is sent to the child process as JSON.
type Job struct {
	Kind    Kind          `json:"kind"`
	Permits int32         `json:"permits"`  // of a semaphore
	Slack   time.Duration `json:"slack_ns"` // error of the clock
	Limit   time.Duration `json:"limit_ns"` // longest search of the child process
	Ops     []Op          `json:"ops"`
}

type reply struct {
	Result porcupine.CheckResult `json:"result"`
}

// Run searches in this process, with a time limit; 0: none.
func (j Job) Run(limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(Model(j.Kind, j.Permits, nil), Operations(j.Ops, j.Slack), limit)
}

// Serve reads one [Job] of a [Searcher] in another process from r, and writes the reply to w. It returns an
// error as soon as the search needs more than 1 GiB of memory. The search goroutine is still running then: the caller
// has to exit. Not for concurrent use.
func Serve(r io.Reader, w io.Writer) error {
	var j Job
	if err := json.NewDecoder(r).Decode(&j); err != nil {
		return fmt.Errorf("reading the search request: %w", err)
	}
	if j.Kind >= Unmodelled {
		return fmt.Errorf("reading the search request: unknown kind of lock %d", j.Kind)
	}
	found := make(chan porcupine.CheckResult, 1)
	go func() { found <- j.Run(j.Limit) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for {
		select {
		case got := <-found:
			return json.NewEncoder(w).Encode(reply{got})
		case <-tick.C:
			if metrics.Read(used); used[0].Value.Uint64() > searchMemory {
				return errMemory
			}
		}
	}
}

// Options of a [Searcher].
type Options struct {
	Limit   time.Duration                // of all searches together
	Command []string                     // runs [Serve]; empty: all searches run in this process, and only short ones
	Step    func(name string, do func()) // calls do, and shows that this step of the work is in progress
}

// Searcher runs jobs until its time is over. It belongs to one goroutine.
type Searcher struct {
	o        Options
	deadline time.Time
}

// NewSearcher returns a searcher whose time begins now.
func NewSearcher(o Options) *Searcher { return &Searcher{o: o, deadline: time.Now().Add(o.Limit)} }

// Search runs a job. If it finds no result, the text says why. Most jobs are easy; others are sent to a child process,
// because only the end of its process bounds the memory of a search (porcupine#3).
func (s *Searcher) Search(j Job) (porcupine.CheckResult, string) {
	left := time.Until(s.deadline)
	if left <= 0 {
		return porcupine.Unknown, "no time was left to search"
	}
	here := left
	switch {
	case len(s.o.Command) > 0:
		here = min(left, quickSearch)
	case len(j.Ops) > noChildOps:
		here = min(left, noChildSearch)
	}
	var got porcupine.CheckResult
	name := fmt.Sprintf("searching for an order of %d operations", len(j.Ops))
	s.o.Step(name, func() { got = j.Run(here) })
	if left = time.Until(s.deadline); got != porcupine.Unknown || len(s.o.Command) == 0 || left <= 0 {
		return got, fmt.Sprintf("the search took longer than %v", here.Round(time.Millisecond))
	}
	var err error
	name += fmt.Sprintf(" in a separate process, for at most %v", left.Round(100*time.Millisecond))
	s.o.Step(name, func() { got, err = searchInChild(s.o.Command, j, left) })
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return porcupine.Unknown, fmt.Sprintf("the search took longer than %v", s.o.Limit)
	case err != nil:
		return porcupine.Unknown, err.Error()
	}
	return got, fmt.Sprintf("the search took longer than %v", s.o.Limit)
}

// searchInChild runs a job in a child process, and kills it at the limit.
func searchInChild(command []string, j Job, limit time.Duration) (porcupine.CheckResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+100*time.Millisecond)
	defer cancel()
	j.Limit = limit
	request, err := json.Marshal(j)
	if err != nil {
		return porcupine.Unknown, fmt.Errorf("encoding the search request: %w", err)
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdin, c.WaitDelay = bytes.NewReader(request), time.Second
	text, err := c.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return porcupine.Unknown, ctx.Err()
	case errors.As(err, &exit) && len(exit.Stderr) > 0:
		return porcupine.Unknown, fmt.Errorf("the search process failed: %s", firstLine(exit.Stderr))
	case err != nil:
		return porcupine.Unknown, fmt.Errorf("the search process failed: %w", err)
	}
	var a reply
	if err := json.Unmarshal(text, &a); err != nil {
		return porcupine.Unknown, fmt.Errorf("reading the reply of the search process: %w", err)
	}
	return a.Result, nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// Operations converts ops for porcupine. An operation of unknown outcome returns after all others and after a horizon:
// ordered before the horizon it has its effect, ordered after the horizon it has none. In the simpler encoding such an
// operation may have no effect at any position; an illegal history then takes time exponential in the number of such
// operations (etcd#14880).
//
// Spans are widened by the clock error.
func Operations(ops []Op, slack time.Duration) []porcupine.Operation {
	out := make([]porcupine.Operation, 0, len(ops)+1)
	last := int64(0)
	unknown := false
	for n := range ops {
		op := &ops[n]
		last = max(last, int64(op.Call))
		if unknown = unknown || op.Unknown; !op.Unknown {
			last = max(last, int64(op.Return+slack))
		}
	}
	for n := range ops {
		op := &ops[n]
		p := porcupine.Operation{ClientId: int(op.Process), Input: op, Call: int64(op.Call)}
		if p.Return = int64(op.Return + slack); op.Unknown {
			p.Return = last + 3
		}
		out = append(out, p)
	}
	if unknown {
		out = append(out, porcupine.Operation{Input: &Op{Kind: OpHorizon}, Call: last + 1, Return: last + 2})
	}
	return out
}
