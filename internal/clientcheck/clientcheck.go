// Package clientcheck checks that a client conforms to the protocol (docs/reference/protocol.md). Authors of clients
// run it before the first scenario. It starts one server and two clients, and then a process with two more.
package clientcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/promise"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`         // the result of the check, with the expected and the actual reply if it failed
	Last   bool   `json:"last,omitempty"` // the check failed so that the others could not be made: the lock cannot be tested
}

// Init is the check that a client starts and replies to init.
const Init = "init"

// Result has the findings of a check of a client.
type Result struct {
	Findings []Finding
	Can      promise.Set // that the client states
	Alone    bool        // a process hosts one client only
	Unstated promise.Set // that the client does not state, although the lock keeps them
}

// Options selects the checks.
type Options struct {
	Lock        client.Spec
	Native      []string          // the command of a native client
	Settings    map[string]string // options of the lock
	InitTimeout time.Duration
	Servers     *cluster.Topology // of the user, of kind command; nil: the smallest topology that the lock runs on
}

// The times of the check, in seconds of a busy machine: a client gets the times of a run.
const (
	lease    = 20 * time.Second
	longWait = 5 * time.Second
	noWait   = 300 * time.Millisecond // for a lock that is held
	grace    = 10 * time.Second       // on top, for the reply
)

// checks is a check in progress.
type checks struct {
	Options
	env      backend.Env
	backend  backend.Backend
	cluster  cluster.Cluster
	links    cluster.Links
	clients  []client.Client
	found    []Finding
	alone    bool        // see Result
	unstated promise.Set // see Result

	mu    sync.Mutex
	noted []string // clients that ignored their source
}

// Run checks a client. The error says that the machine could not run the check; an error of the client is a finding.
func Run(ctx context.Context, o Options) (found Result, err error) {
	dir, err := os.MkdirTemp("", "chaos-doctor-")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	run, err := rundir.Create(dir, "doctor", 1, time.Now())
	if err != nil {
		return found, err
	}
	record, err := ledger.Open("doctor")
	if err != nil {
		return found, err
	}
	defer record.Close()
	c := &checks{Options: o, backend: servers.Process().New(backend.Options{Client: o.Native})}
	c.env = backend.Env{
		Topology: c.topology().Defaults(), Lock: o.Lock, Clients: 2 * alone, Duration: time.Minute,
		InitTimeout: o.InitTimeout, Seed: 1, Dir: run, Ledger: record,
		Note: func(f, target, detail string) {
			if f == history.SourceIgnored {
				c.mu.Lock()
				c.noted = append(c.noted, detail)
				c.mu.Unlock()
			}
		},
	}
	if c.cluster, err = c.backend.Start(ctx, c.env); err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, c.cluster.Close(context.WithoutCancel(ctx))) }()
	links, ok := c.cluster.(cluster.Links)
	if !ok {
		return found, errors.New("the backend has no gates")
	}
	c.links = links
	c.perform(ctx)
	if logs := c.logs(); logs != "" && !c.allOK() {
		c.add("standard error", true, logs)
	}
	return Result{c.found, c.Lock.Can, c.alone, c.unstated}, ctx.Err()
}

// topology is the user's, or the smallest on which the lock runs.
func (c *checks) topology() cluster.Topology {
	if c.Servers != nil {
		return *c.Servers
	}
	for _, kind := range []string{
		cluster.Single, cluster.Replicated, cluster.Quorum, cluster.Sharded, cluster.Sentinel, cluster.ZooKeeper,
		cluster.Etcd, cluster.Postgres, cluster.MySQL,
	} {
		if c.Lock.Runs(kind) {
			return cluster.Topology{Kind: kind}
		}
	}
	return cluster.Topology{Kind: cluster.Single}
}

func (c *checks) add(check string, ok bool, detail string) {
	c.found = append(c.found, Finding{Check: check, OK: ok, Detail: format.Line(detail)})
}

func (c *checks) failed(check, detail string, args ...any) {
	c.add(check, false, fmt.Sprintf(detail, args...))
}

func (c *checks) allOK() bool {
	for _, f := range c.found {
		if !f.OK {
			return false
		}
	}
	return true
}

// logs is the end of the standard error of the first client.
func (c *checks) logs() string {
	text, _ := os.ReadFile(filepath.Join(c.env.Dir.File(rundir.LogsDir), "client-0.log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// perform goes through the checks, and stops at the first after which the others could not be judged.
func (c *checks) perform(ctx context.Context) {
	defer c.closeAll(ctx)
	able := true
	for i := 0; i < alone && able; i++ {
		able = c.start(ctx, i)
	}
	if !able || !c.exclusion(ctx) {
		c.found[len(c.found)-1].Last = true
		return
	}
	c.refusals(ctx)
	if len(c.cluster.Nodes()) > 0 { // without servers there are no connections
		c.source()
		c.outcomes(ctx)
	}
	renewals := c.renewals(ctx)
	c.tries(ctx)
	c.shared(ctx)
	renewals()
}

// start starts a client and sends init.
func (c *checks) start(ctx context.Context, i int) bool {
	begun := time.Now()
	r, err := c.setUp(ctx, i)
	if err != nil || r.Type != "ok" {
		c.failed(Init, "expected ok, got %s", answer(r, err))
		return false
	}
	if i == 0 {
		c.add(Init, true, fmt.Sprintf("ok after %s; states %s", format.Duration(time.Since(begun)),
			cmp.Or(r.Can.String(), "no promises")))
		c.promises(r.Can)
	}
	return true
}

// setUp starts client i, and returns its reply to init.
func (c *checks) setUp(ctx context.Context, i int) (client.Reply, error) {
	cl, err := c.backend.Client(ctx, c.env, i)
	if err != nil {
		return client.Reply{}, fmt.Errorf("client %d did not start: %w", i, err)
	}
	c.clients = append(c.clients, cl)
	setup := &client.Setup{Lock: c.Lock.Name, Endpoints: c.cluster.Endpoints(i), Options: c.Settings, Seed: uint64(i + 1)}
	return c.send(ctx, i, client.Request{Op: client.Init, Setup: setup}, cmp.Or(c.InitTimeout, 15*time.Second))
}

// promises compares the promises in the client's reply with its row in the catalog.
func (c *checks) promises(can promise.Set) {
	if strings.HasPrefix(c.Lock.Name, client.ExecPrefix) {
		c.Lock.Can = can
		return
	}
	if can != c.Lock.Can {
		c.failed("promises", "the catalog has %v, the client states %v", c.Lock.Can, can)
	}
}

// send sends a request to client i. The timeout is added to the wait of the request.
func (c *checks) send(ctx context.Context, i int, r client.Request, timeout time.Duration) (client.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Wait+timeout)
	defer cancel()
	return c.clients[i].Do(ctx, r)
}

// answer is a reply as text.
func answer(r client.Reply, err error) string {
	if err != nil {
		return err.Error()
	}
	text := r.Type
	if r.Code != "" {
		text += " (" + r.Code + ")"
	}
	if r.Error != "" {
		text += ": " + r.Error
	}
	return text
}

// request is an acquire or a release that fits the lock.
func (c *checks) request(op, key, owner string, wait time.Duration) client.Request {
	a := client.Acquire{Key: key, Owner: owner}
	if op == history.OpAcquire.String() || op == history.OpTry.String() {
		a.Lease, a.Wait = lease, wait
	}
	if c.Lock.Can.Has(promise.Unleased) {
		a.Lease = 0
	}
	if c.Lock.Can.Has(promise.ReadWrite) {
		a.Mode = "write"
	}
	if c.Lock.Can.Has(promise.Permits) {
		a.Permits, a.Limit = 1, 1
	}
	return client.Request{Op: op, Acquire: a}
}

// expect sends a request and reports whether the reply has one of some types, as a finding.
func (c *checks) expect(ctx context.Context, check string, i int, r client.Request, types ...string) bool {
	reply, err := c.send(ctx, i, r, grace)
	return c.replied(check, r, reply, err, types...)
}

// replied reports whether the reply to a request has one of some types, as a finding.
func (c *checks) replied(check string, r client.Request, reply client.Reply, err error, types ...string) bool {
	ok := err == nil && slices.Contains(types, reply.Type)
	detail := answer(reply, err)
	if check == "acquire" && ok && reply.ValidMS == 0 {
		detail += "; state valid_ms: without it, the lease counts from a sample, the request or the grant"
	}
	if !ok {
		detail = fmt.Sprintf("%s: expected %s, got %s", r.Op, strings.Join(types, " or "), detail)
	}
	c.add(check, ok, detail)
	if ok && reply.Token > 0 && r.Op == history.OpAcquire.String() {
		c.sees(promise.Fenced, "the reply to acquire has a token")
	}
	return ok
}
