package faults

import (
	"context"
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// TestForeignDataOfARealServer: free keys get a string or a hash, a lock's keys are left alone, and healing names
// changed ones.
func TestForeignDataOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	run(t, c, "n1", "SET", "held", "h:1")
	in := inject(t, foreignDataSpec, Env{Cluster: c, Keys: []string{"a", "b", "held", "d", "e", "f"}}, "n1")
	if effect := takesEffect(t, in); effect != "data at 5 keys" {
		t.Error(effect)
	}
	for key, want := range map[string]string{"a": "string", "b": "hash", "held": "string", "d": "hash"} {
		if got := run(t, c, "n1", "TYPE", key); got != want {
			t.Errorf("%s is a %v, want a %s", key, got, want)
		}
	}
	run(t, c, "n1", "DEL", "a")
	run(t, c, "n1", "HSET", "b", "owner", "x")
	run(t, c, "n1", "SET", "d", "data of another program")
	if how, err := in.Heal(t.Context()); err != nil || how != "foreign data lost: a, b, d" {
		t.Errorf("healed: %q, %v", how, err)
	}
	if got := run(t, c, "n1", "EXISTS", "e", "f"); got != int64(0) {
		t.Errorf("%v keys are left", got)
	}
	if got := run(t, c, "n1", "GET", "held"); got != "h:1" {
		t.Errorf("the lock is %v", got)
	}
}

// TestForeignDataLeftAlone: data that nobody has changed are removed.
func TestForeignDataLeftAlone(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, foreignDataSpec, Env{Cluster: c, Keys: []string{"a", "b"}}, "n1")
	takesEffect(t, in)
	if how := heals(t, in); how != "the data are removed" {
		t.Error(how)
	}
}

// deaf is a server some of whose replies are lost: it executes the command, and the caller gets an error.
type deaf struct {
	*process.Cluster
	lose int // how many of the next replies to EVAL are lost
	then func()
}

var errNoReply = errors.New("no reply")

func (d *deaf) Do(ctx context.Context, node string, args ...any) (any, error) {
	reply, err := d.Cluster.Do(ctx, node, args...)
	if args[0] == "EVAL" && d.lose > 0 {
		d.lose--
		if d.then != nil {
			d.then()
		}
		return nil, errNoReply
	}
	return reply, err
}

// TestForeignDataWithoutReply: data whose write or removal had no answer are removed, and no lock is accused.
func TestForeignDataWithoutReply(t *testing.T) {
	const unsure = "the data are removed; a request had no answer, and it is unknown whether they had been changed at a"
	del := func(d *deaf) { run(t, d.Cluster, "n1", "DEL", "a") }
	// Each loses the reply about key a.
	for name, c := range map[string]struct {
		write, remove bool
		then, before  func(*deaf) // after the reply was lost; before healing
		want          string
	}{
		"write":                   {write: true, want: "the data are removed"},
		"write, changed later":    {write: true, before: del, want: "foreign data lost: a"},
		"write, a lock has it":    {write: true, then: func(d *deaf) { run(t, d.Cluster, "n1", "SET", "a", "h:1") }, want: unsure},
		"removal":                 {remove: true, want: unsure},
		"removal, changed before": {remove: true, before: del, want: unsure},
	} {
		t.Run(name, func(t *testing.T) {
			d := &deaf{Cluster: startServers(t, cluster.Single)}
			if c.then != nil {
				d.then = func() { c.then(d) }
			}
			if c.write {
				d.lose = 1
			}
			in := inject(t, foreignDataSpec, Env{Cluster: d, Keys: []string{"a", "b", "c"}}, "n1")
			takesEffect(t, in)
			if c.before != nil {
				c.before(d)
			}
			if c.remove {
				d.lose = 1
			}
			if how := heals(t, in); how != c.want {
				t.Errorf("healed: %s, want %s", how, c.want)
			}
			if got := run(t, d.Cluster, "n1", "EXISTS", "b", "c"); got != int64(0) {
				t.Errorf("%v keys are left", got)
			}
			got, _ := d.Cluster.Do(t.Context(), "n1", "GET", "a")
			if text, _ := got.(string); text != "" && text != "h:1" {
				t.Errorf("a is %q", text)
			}
		})
	}
}

// TestForeignDataWithoutObservation: data of a write without an answer are removed, although no effect was seen.
func TestForeignDataWithoutObservation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := &deaf{Cluster: startServers(t, cluster.Single), lose: 1, then: cancel}
	in := inject(t, foreignDataSpec, Env{Cluster: d, Keys: []string{"a", "b"}}, "n1")
	_, _ = in.Observe(ctx) // it may try once more
	if how := heals(t, in); how != "the data are removed" {
		t.Error(how)
	}
	if got := run(t, d.Cluster, "n1", "EXISTS", "a", "b"); got != int64(0) {
		t.Errorf("%v keys are left", got)
	}
}

// TestForeignDataNeverAnswered: healing asks until ctx ends, for every key, and then fails.
func TestForeignDataNeverAnswered(t *testing.T) {
	d := &deaf{Cluster: startServers(t, cluster.Single)}
	in := inject(t, foreignDataSpec, Env{Cluster: d, Keys: []string{"a", "b"}}, "n1")
	takesEffect(t, in)
	ctx, cancel := context.WithCancel(t.Context())
	d.lose = 1 << 30
	asked := 0
	d.then = func() {
		if asked++; asked == 4 { // the second round
			cancel()
		}
	}
	if how, err := in.Heal(ctx); !errors.Is(err, errNoReply) || asked < 4 {
		t.Errorf("healed after %d requests: %q, %v", asked, how, err)
	}
	if got := run(t, d.Cluster, "n1", "EXISTS", "a", "b"); got != int64(0) {
		t.Errorf("%v keys are left", got)
	}
}
