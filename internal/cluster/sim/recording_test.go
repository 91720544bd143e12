package sim_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A recording is what the nodes of one Redis Cluster, or the members and clients of one ensemble, reported, event after
// event.
type recording struct {
	Redis  string     `json:"redis,omitempty"`     // version of the servers
	Zoo    string     `json:"zookeeper,omitempty"` // version of the servers
	Load   string     `json:"load"`                // of the machine, when the recording was over
	Events []recorded `json:"events"`
}

// recorded is what the nodes reported about one event.
type recorded struct {
	Event   string            `json:"event"`
	Changes []change          `json:"changes"` // oldest first
	End     map[string]string `json:"-"`       // what all nodes agree about when it is over
}

// change is one field with a new value, of what a node or a client reports. Changes with the same time and node
// were seen by one poll, so their order is unknown.
type change struct {
	ms   int64 // since the event was started
	node string
	what string // "n4=master"
}

// MarshalText writes "45 n1 n4=master".
func (c change) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d %s %s", c.ms, c.node, c.what), nil
}

// UnmarshalText reads what MarshalText writes.
func (c *change) UnmarshalText(text []byte) (err error) {
	ms, rest, _ := strings.Cut(string(text), " ")
	c.node, c.what, _ = strings.Cut(rest, " ")
	c.ms, err = strconv.ParseInt(ms, 10, 64)
	return err
}

// event is something to do to a cluster, and what is reported when it is over.
type event struct {
	name  string
	start func() error
	end   []string
}

// views are what each node reports.
type views struct {
	now  map[string]map[string]string // by node; one that does not reply is not in it
	last map[string]map[string]string // by node: what it reported last, maybe before it went down
}

func newViews() views {
	return views{map[string]map[string]string{}, map[string]map[string]string{}}
}

// update takes the view of a node, nil if it does not reply, and appends to r, unless that is nil, what has changed
// and is not to be left out.
func (v views) update(r *recorded, ms int64, node string, now map[string]string, leaveOut func(field string) bool) {
	if now == nil {
		delete(v.now, node)
		return
	}
	before := v.last[node]
	for _, field := range slices.Sorted(maps.Keys(now)) {
		if r != nil && now[field] != before[field] && !leaveOut(field) {
			r.Changes = append(r.Changes, change{ms: ms, node: node, what: field + "=" + now[field]})
		}
	}
	v.now[node], v.last[node] = now, now
}

// polled is what is recorded, simulated or real.
type polled interface {
	poll(r *recorded, ms int64) // appends what has changed to r, unless that is nil
	disturbed(r *recorded) bool // by something other than the event
}

const pollEvery = 4 * time.Millisecond

// errDisturbed: something happened that the event has not caused, because the machine was too busy.
var errDisturbed = errors.New("this machine is too busy")

// record starts an event, and polls until it is done.
func record(o polled, e event, done func(*recorded) bool) (recorded, error) {
	o.poll(nil, 0)
	r := recorded{Event: e.name}
	began := time.Now()
	if err := e.start(); err != nil {
		return r, err
	}
	for end := began.Add(stepTimeout); ; time.Sleep(pollEvery) { //nolint:forbidigo // polls: there is no event to wait for
		o.poll(&r, time.Since(began).Milliseconds())
		if o.disturbed(&r) {
			return r, fmt.Errorf("%w: %v", errDisturbed, r.Changes)
		}
		if done(&r) {
			return r, nil
		}
		if time.Now().After(end) {
			return r, fmt.Errorf("%s is not over after %v: %v", e.name, stepTimeout, r.Changes)
		}
	}
}
