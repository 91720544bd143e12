package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// foreign-data is another program that keeps data of its own under the names of locks: strings and hashes, at keys
// that no lock has at that moment. A lock must neither take such a key nor change or delete its data. It does
// not write data that look like a lock's.
var foreignDataSpec = Spec{
	Name:      "foreign-data",
	OnlyRedis: "keys",
	Doc:       "writes strings and hashes, as another program would, to keys of locks that are free, until healed.",
	Source:    "redisson#4023 (data of another type at the name of a lock)",
	Class:     history.FaultPlants,
	Object:    history.ObjectKeys,
	Verb:      "had data of another program under the names of locks",
	Targets:   []Target{Master, Deciding, Node},
	Affects:   history.AffectsCommands,
	// Elsewhere a failover or a migration may lose them.
	Topologies: []string{cluster.Single, cluster.Quorum},
	Lacks:      lacksAdmin,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		f := &foreignData{admin: env.Cluster.(cluster.Admin), node: target, text: foreignText}
		if env.Rand != nil {
			f.text += fmt.Sprintf(" (%x)", env.Rand.Uint64())
		}
		for i, key := range env.Keys {
			f.keys = append(f.keys, &foreignKey{name: key, hash: i%2 == 1})
		}
		return newCommand(target, func(ctx context.Context) (string, bool, error) {
			n, err := f.write(ctx)
			return "data at " + format.Count(n, "key"), n > 0, err
		}).undoneBy(f.remove), nil
	},
}

// foreignData are the data of one injection.
type foreignData struct {
	admin cluster.Admin
	node  string
	text  string // differs between injections
	keys  []*foreignKey
}

// foreignKey describes the data at a key.
type foreignKey struct {
	name  string
	hash  bool
	state foreignState
}

type foreignState int

const (
	notWritten    foreignState = iota // the key was not free
	maybeWritten                      // a write had no answer
	written                           // a write was answered
	maybeRemoved                      // a removal had no answer
	foreignGone                       // they were removed
	foreignLost                       // they were not as they had been written
	foreignUnsure                     // they are not there; a lock may have changed them, or not
)

const (
	foreignText = "data of another program"

	// readForeign sets value to the text of a string, or of a hash, that a fault may have written.
	readForeign = "local value = ARGV[2] == 'hash' and redis.pcall('HGETALL', KEYS[1]) or redis.pcall('GET', KEYS[1]) " +
		"if type(value) == 'table' then value = #value == 2 and value[1] == 'text' and value[2] end "

	// writeForeign writes a string, or a hash, to a key that does not exist. It succeeds again if it has done so.
	writeForeign = readForeign + "if value == ARGV[1] then return 1 end " +
		"if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end " +
		"if ARGV[2] == 'hash' then redis.call('HSET', KEYS[1], 'text', ARGV[1]) " +
		"else redis.call('SET', KEYS[1], ARGV[1]) end return 1"

	// removeForeign removes that, and says whether it was as it had been written.
	removeForeign = readForeign + "if value ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])"
)

func (f *foreignData) do(ctx context.Context, k *foreignKey, script string) (int64, error) {
	kind := "string"
	if k.hash {
		kind = "hash"
	}
	return number(ctx, f.admin, f.node, "EVAL", script, "1", k.name, f.text, kind)
}

// write writes to the keys that are free, and counts the keys that certainly got data. After an error it can be
// repeated.
func (f *foreignData) write(ctx context.Context) (n int, err error) {
	for _, k := range f.keys {
		if k.state != written {
			before := k.state
			k.state = maybeWritten
			did, err := f.do(ctx, k, writeForeign)
			switch {
			case err != nil:
				return 0, err
			case did == 1:
				k.state = written
			default:
				k.state = before
			}
		}
		if k.state == written {
			n++
		}
	}
	return n, nil
}

// remove removes the data, and names the keys at which the data was no longer there. Another fault may keep the server
// from replying: it asks again until every removal was answered, or ctx ends.
func (f *foreignData) remove(ctx context.Context) (how string, err error) {
	err = settle(ctx, func() (bool, error) {
		var errs []error
		for _, k := range f.keys {
			if k.state == maybeWritten || k.state == written || k.state == maybeRemoved {
				errs = append(errs, f.removeKey(ctx, k))
			}
		}
		err := errors.Join(errs...)
		return err == nil, err
	})
	if err != nil {
		return "", fmt.Errorf("removing foreign data: %w", err)
	}
	if lost := f.names(foreignLost); lost != "" {
		return history.ForeignDataLost + ": " + lost, nil
	}
	how = "the data are removed"
	if unsure := f.names(foreignUnsure); unsure != "" {
		how += "; a request had no answer, and it is unknown whether they had been changed at " + unsure
	}
	return how, nil
}

func (f *foreignData) removeKey(ctx context.Context, k *foreignKey) error {
	n, err := f.do(ctx, k, removeForeign)
	switch {
	case err != nil && k.state == written:
		k.state = maybeRemoved
	case err != nil:
	case n == 1:
		k.state = foreignGone
	case k.state == written:
		k.state = foreignLost
	default:
		k.state = foreignUnsure
	}
	return err
}

// names lists the keys in that state.
func (f *foreignData) names(state foreignState) string {
	var names []string
	for _, k := range f.keys {
		if k.state == state {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ", ")
}
