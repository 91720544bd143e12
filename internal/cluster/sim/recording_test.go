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

// A recording has the reports of the nodes of one Redis Cluster, or of the members and clients of one ensemble, event
// after event.
type recording struct {
	Redis  string     `json:"redis,omitempty"`     // version of the servers
	Zoo    string     `json:"zookeeper,omitempty"` // version of the servers
	Load   string     `json:"load"`                // of the machine, when the recording was over
	Events []recorded `json:"events"`
}

// recorded has the reports of the nodes about one event.
type recorded struct {
	Event   string            `json:"event"`
	Changes []change          `json:"changes"` // oldest first
	End     map[string]string `json:"-"`       // the common view of all nodes when it is over
}

// change is one field with a new value, in the report of a node or a client. Changes with the same time and node were
// seen by one poll, so their order is unknown.
type change struct {
	ms   int64 // since the event was started
	node string
	what string // "n4=master"
}

// MarshalText writes "45 n1 n4=master".
func (c change) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d %s %s", c.ms, c.node, c.what), nil
}

// UnmarshalText is the inverse of MarshalText.
func (c *change) UnmarshalText(text []byte) (err error) {
	ms, rest, _ := strings.Cut(string(text), " ")
	c.node, c.what, _ = strings.Cut(rest, " ")
	c.ms, err = strconv.ParseInt(ms, 10, 64)
	return err
}

// event is an action on a cluster, and the reports when it is over.
type event struct {
	name  string
	start func() error
	end   []string
}

// views are the reports of each node.
type views struct {
	now  map[string]map[string]string // by node, without nodes that do not reply
	last map[string]map[string]string // by node: its last report, maybe before it went down
}

func newViews() views {
	return views{map[string]map[string]string{}, map[string]map[string]string{}}
}

// update takes the view of a node, nil if it does not reply, and appends to r, unless that is nil, the changes that are
// not to be left out.
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

// polled are the recorded servers, simulated or real.
type polled interface {
	poll(r *recorded, ms int64) // appends the changes to r, unless that is nil
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
