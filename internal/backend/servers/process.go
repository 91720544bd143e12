// Package servers has the backends of real servers: processes, containers, and servers that exist already. Each client
// is a process of its own, or shares one with others.
package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/target"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Process is the backend of server processes on loopback.
func Process() backend.Spec {
	return backend.Spec{
		Name: "process",
		Doc: "real redis-server, Sentinel, ZooKeeper, etcd, PostgreSQL or MySQL processes, or servers of your own, on " +
			"loopback, each client a process of its own.",
		Missing: processMissing,
		New:     func(o backend.Options) backend.Backend { return newProcessBackend(o) },
	}
}

func processMissing(s scenarios.Scenario) string {
	if runtime.GOOS != "linux" {
		return "it needs Linux, to stop processes and to identify connections"
	}
	if s.Topology.Given() {
		return ""
	}
	if !s.Topology.Redis() {
		if err := process.Missing(s.Topology); err != nil {
			return err.Error()
		}
		return missingRequirements(s.Requirements())
	}
	if _, err := process.Version(context.Background(), ""); err != nil {
		return err.Error()
	}
	for _, name := range s.LockNames() {
		if err := adapters.Ready(name); err != nil {
			return err.Error()
		}
	}
	why := ""
	if s.Requirements().Network {
		why = process.MissingNetwork()
	}
	return cmp.Or(why, missingRequirements(s.Requirements()))
}

// missingRequirements describes the missing parts of this machine for real servers with settable clocks and lossy
// disks.
func missingRequirements(need cluster.Requirements) (why string) {
	if need.Clocks {
		why = wallclock.Missing()
	}
	if need.Disks && why == "" {
		why = process.MissingDisks()
	}
	return why
}

type processBackend struct {
	backend.RealTime
	command []string // a native client
	facts   backend.Facts

	mu    sync.Mutex
	hosts map[int]*clientHost // with PerProcess, by number
}

// clientHost is a process that several clients share.
type clientHost struct {
	once  sync.Once
	stdio *client.Stdio
	err   error
}

func newProcessBackend(o backend.Options) *processBackend {
	return &processBackend{command: o.Client, facts: backend.Facts{Name: "process"}, hosts: map[int]*clientHost{}}
}

func (b *processBackend) Facts() backend.Facts { return b.facts }

// keepAll is the duration of the longest run whose samples are all recorded.
const keepAll = time.Minute

// programEvery is the shortest time between two samples that a program of the user makes: each starts a process.
const programEvery = 50 * time.Millisecond

// started completes the facts.
func (b *processBackend) started(e backend.Env, versions map[string]string) {
	every := backend.SampleEvery
	switch {
	case e.Topology.Given():
		every = targetSampleEvery
	case e.Topology.Role != nil || e.Topology.Sample != nil:
		every = programEvery
	}
	b.facts.Versions, b.facts.Sampling = versions, backend.Sampling{Every: every, Thin: e.Duration > keepAll}
}

func (b *processBackend) Start(ctx context.Context, e backend.Env) (cluster.Cluster, error) {
	if err := checkLimits(e); err != nil {
		return nil, err
	}
	if e.Topology.Given() {
		b.started(e, nil)
		return target.OpenGiven(ctx, e.Topology, strangersOf(e))
	}
	c, err := process.Start(ctx, process.Config{
		Topology: e.Topology, Requirements: e.Requirements, Dir: e.Dir.File(rundir.LogsDir),
		Ledger: e.Ledger, Log: harnessLog(e.Dir), Stranger: strangersOf(e),
	})
	if err != nil {
		return nil, err
	}
	b.started(e, map[string]string{e.Topology.Software(): c.Version()})
	return c, nil
}

// harnessLog is the log of cluster events that are neither results nor errors; nil if it cannot be written.
func harnessLog(dir *rundir.Dir) *slog.Logger {
	f, err := dir.LogFile("harness.log") // closed by the exit of the program
	if err != nil {
		return nil
	}
	return slog.New(slog.NewTextHandler(f, nil))
}

// checkLimits refuses a run that would exceed a limit of the user.
func checkLimits(e backend.Env) error {
	return errors.Join(checkFileLimit(maxFiles(), e.Topology, e.Clients),
		checkMemoryLimit(maxMemory(), e.Clients, runtime.NumCPU()))
}

// Every connection of a client through a gate takes two open files of this process. Measured per client: 7 on a single
// master, 13 on Sentinel, 22 on a quorum of five; in total, 137 for 5 clients on Sentinel.
const baseFiles = 150

func filesPerClient(t cluster.Topology) int {
	switch t.Kind {
	case cluster.Single, cluster.Replicated:
		return 8
	case cluster.Quorum, cluster.Sharded:
		return 5 * max(t.Size(), 1)
	}
	return 15
}

// checkFileLimit refuses a run that would exceed the limit of open files (0: unknown). A gate that cannot accept looks
// like a server that does not reply, and the lock would be blamed for it.
func checkFileLimit(limit uint64, t cluster.Topology, clients int) error {
	need := uint64(baseFiles + filesPerClient(t)*clients)
	if limit == 0 || limit >= need {
		return nil
	}
	return fmt.Errorf("%w: %s may need %d open files and the limit is %d: raise it (ulimit -n %d) or use fewer clients "+
		"(--clients)", cluster.ErrEnvironment, format.Count(clients, "client"), need, limit, need)
}

// Address space of this process. Measured with /proc/PID/status: 2.3 GB for 2 clients, 2.5 for 10, 3.2 for 100 on two
// processors; with a limit of 3.3 GB, a run with 100 clients aborted. The Go runtime reserves the base; each thread has
// a stack, and the C library an arena for each of the first threads. A thread waits for each client process.
const (
	baseMemory         = 1500 << 20
	baseThreads        = 15
	stackMemory        = 8 << 20
	arenaMemory        = 64 << 20
	arenasPerProcessor = 8 // for each processor
)

// checkMemoryLimit refuses a run that would exceed the limit of the address space (0: unknown): the Go runtime aborts.
func checkMemoryLimit(limit uint64, clients, processors int) error {
	threads := baseThreads + clients
	need := uint64(baseMemory + threads*stackMemory + min(threads, arenasPerProcessor*processors)*arenaMemory)
	if limit == 0 || limit >= need {
		return nil
	}
	return fmt.Errorf("%w: %s may need %d KB of address space and the limit is %d KB: raise it (ulimit -v %d) or use "+
		"fewer clients (--clients)", cluster.ErrEnvironment, format.Count(clients, "client"), need>>10, limit>>10, need>>10)
}

// Client starts client i in a process of its own, or in a shared one, which the first of its clients starts.
func (b *processBackend) Client(_ context.Context, e backend.Env, i int) (client.Client, error) {
	if e.PerProcess < 2 {
		stdio, err := b.startClient(e, i)
		if err != nil {
			return nil, err
		}
		return stdio.Client(""), nil
	}
	b.mu.Lock()
	h := b.hosts[i/e.PerProcess]
	if h == nil {
		h = &clientHost{}
		b.hosts[i/e.PerProcess] = h
	}
	b.mu.Unlock()
	h.once.Do(func() { h.stdio, h.err = b.startClient(e, i) })
	if h.err != nil {
		return nil, h.err
	}
	return h.stdio.Client(strconv.Itoa(i)), nil
}

// maxClientLog bounds the log of a client, in bytes: a client that prints in a loop must not fill the disk.
const maxClientLog = 16 << 20

// startClient starts the process of client i: a native client, or the user's program.
func (b *processBackend) startClient(e backend.Env, i int) (*client.Stdio, error) {
	command := b.command
	if e.Lock.Command != nil {
		command = e.Lock.Command
	}
	if len(command) == 0 {
		return nil, errors.New("the command of the native client is not set")
	}
	p, err := child.Start(child.Spec{
		Path: command[0], Args: command[1:], Pipes: true,
		Env:    append(os.Environ(), "GOMAXPROCS=1", e.Ledger.Mark()),
		Mark:   e.Ledger.ClientMark(i),
		Stderr: filepath.Join(e.Dir.File(rundir.LogsDir), fmt.Sprintf("client-%d.log", i)), MaxStderr: maxClientLog,
	})
	if err != nil {
		return nil, err
	}
	if err := e.Ledger.Process(p.PID()); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return client.NewStdio(p.Stdin(), p.Stdout(), p), nil
}

var (
	_ backend.Backend = (*processBackend)(nil)
	_ client.Proc     = (*child.Process)(nil)
)
