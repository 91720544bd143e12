package checker

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

// errSearchMemory is what [ServeSearch] returns if a search needs more memory than it may use.
var errSearchMemory = fmt.Errorf("searching for a legal order: more than %d MiB of memory needed", searchMemory>>20)

// searchJob asks whether operations have a legal order. It is sent to the child process as JSON.
type searchJob struct {
	Kind    lockKind      `json:"kind"`
	Permits int32         `json:"permits"`  // of a semaphore
	Slack   time.Duration `json:"slack_ns"` // error of the clock
	Limit   time.Duration `json:"limit_ns"` // longest search
	Ops     []searchOp    `json:"ops"`

	ops []lockOp
}

// searchOp is a lockOp as numbers.
type searchOp [12]int64

type searchReply struct {
	Result porcupine.CheckResult `json:"result"`
}

// run calls porcupine in this process, with a time limit.
func (j searchJob) run(limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(modelOf(j.Kind, j.Permits, nil), operations(j.ops, j.Slack), limit)
}

// pack fills in j.Ops from j.ops.
func (j *searchJob) pack() {
	flag := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	j.Ops = make([]searchOp, len(j.ops))
	for i, op := range refs(j.ops) {
		j.Ops[i] = searchOp{int64(op.call), int64(op.ret), int64(op.owner), int64(op.epoch), int64(op.pos),
			op.depth, int64(op.permits), int64(op.token), int64(op.kind), flag(op.write), flag(op.unknown),
			flag(op.leased)}
	}
}

// unpack is the opposite of pack.
func (j *searchJob) unpack() {
	j.ops = make([]lockOp, len(j.Ops))
	for i, n := range j.Ops {
		j.ops[i] = lockOp{call: time.Duration(n[0]), ret: time.Duration(n[1]), owner: int32(n[2]), epoch: int32(n[3]),
			pos: int32(n[4]), depth: n[5], permits: int32(n[6]), token: uint64(n[7]), kind: opKind(n[8]),
			write: n[9] == 1, unknown: n[10] == 1, leased: n[11] == 1, span: -1}
	}
}

// ServeSearch reads one request of a [Judge] in another process from r, and writes the reply to w. It returns an
// error as soon as the search needs more than 1 GiB of memory. The search goroutine is still running then: the caller
// has to exit. Not for concurrent use.
func ServeSearch(r io.Reader, w io.Writer) error {
	var j searchJob
	if err := json.NewDecoder(r).Decode(&j); err != nil {
		return fmt.Errorf("reading the search request: %w", err)
	}
	if j.Kind >= unmodelled {
		return fmt.Errorf("reading the search request: unknown kind of lock %d", j.Kind)
	}
	j.unpack()
	found := make(chan porcupine.CheckResult, 1)
	go func() { found <- j.run(j.Limit) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	for {
		select {
		case got := <-found:
			return json.NewEncoder(w).Encode(searchReply{got})
		case <-tick.C:
			if metrics.Read(used); used[0].Value.Uint64() > searchMemory {
				return errSearchMemory
			}
		}
	}
}

// searcher runs jobs until its deadline.
type searcher struct {
	o        Options
	deadline time.Time
}

func newSearcher(o Options) *searcher {
	return &searcher{o: o, deadline: time.Now().Add(o.searchTime())}
}

// search runs a job. If it finds no result, the text says why. Most jobs are easy; others are sent to a child process,
// because only the end of its process bounds the memory of a search (porcupine#3).
func (s *searcher) search(j searchJob) (porcupine.CheckResult, string) {
	left := time.Until(s.deadline)
	if left <= 0 {
		return porcupine.Unknown, "no time was left to search"
	}
	here := left
	switch {
	case len(s.o.SearchCommand) > 0:
		here = min(left, quickSearch)
	case len(j.ops) > noChildOps:
		here = min(left, noChildSearch)
	}
	var got porcupine.CheckResult
	name := fmt.Sprintf("searching for an order of %d operations", len(j.ops))
	s.o.Progress.step(name, 0, func() { got = j.run(here) })
	if left = time.Until(s.deadline); got != porcupine.Unknown || len(s.o.SearchCommand) == 0 || left <= 0 {
		return got, fmt.Sprintf("the search took longer than %v", here.Round(time.Millisecond))
	}
	var err error
	name += fmt.Sprintf(" in a separate process, for at most %v", left.Round(100*time.Millisecond))
	s.o.Progress.step(name, 0, func() { got, err = searchInChild(s.o.SearchCommand, j, left) })
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return porcupine.Unknown, fmt.Sprintf("the search took longer than %v", s.o.searchTime())
	case err != nil:
		return porcupine.Unknown, err.Error()
	}
	return got, fmt.Sprintf("the search took longer than %v", s.o.searchTime())
}

// searchInChild runs a job in a child process, and kills it at the limit.
func searchInChild(command []string, j searchJob, limit time.Duration) (porcupine.CheckResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+100*time.Millisecond)
	defer cancel()
	j.Limit = limit
	j.pack()
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
	var a searchReply
	if err := json.Unmarshal(text, &a); err != nil {
		return porcupine.Unknown, fmt.Errorf("reading the reply of the search process: %w", err)
	}
	return a.Result, nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}

// operations converts ops for porcupine. An operation of unknown outcome returns after all others and after a horizon:
// ordered before the horizon it has its effect, ordered after the horizon it has none. In the simpler encoding such an
// operation may have no effect at any position; an illegal history then takes time exponential in the number of such
// operations (etcd#14880).
//
// Spans are widened by the clock error.
func operations(ops []lockOp, slack time.Duration) []porcupine.Operation {
	out := make([]porcupine.Operation, 0, len(ops)+1)
	last := int64(0)
	unknown := false
	for _, op := range refs(ops) {
		last = max(last, int64(op.call))
		if unknown = unknown || op.unknown; !op.unknown {
			last = max(last, int64(op.ret+slack))
		}
	}
	for _, op := range refs(ops) {
		p := porcupine.Operation{ClientId: int(op.process), Input: op, Call: int64(op.call)}
		if p.Return = int64(op.ret + slack); op.unknown {
			p.Return = last + 3
		}
		out = append(out, p)
	}
	if unknown {
		out = append(out, porcupine.Operation{Input: &lockOp{kind: opHorizon}, Call: last + 1, Return: last + 2})
	}
	return out
}
