package faults

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// foreign-data is another program that keeps data of its own under the names of locks: strings and hashes, at keys
// that no lock has at that moment. A lock must neither take such a key nor change or delete what is there. It does
// not write data that look like those of a lock.
var foreignDataSpec = Spec{
	Name:      "foreign-data",
	OnlyRedis: "keys",
	Doc:       "another program writes strings and hashes of its own to free keys of locks, until healed.",
	Source:    "redisson#4023 (data of another type at the name of a lock)",
	Targets:   []Target{Master, Deciding, Node},
	Affects:   history.AffectsCommands,
	// Elsewhere a failover or a migration may lose them.
	Topologies: []string{cluster.Single, cluster.Quorum},
	Lacks:      lacksAdmin,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		f := &foreignData{admin: env.Cluster.(cluster.Admin), node: target}
		write := newCommand(target, func(ctx context.Context) (string, bool, error) {
			for i, key := range env.Keys {
				if err := f.write(ctx, key, i%2 == 1); err != nil {
					return "", false, err
				}
			}
			return "data at " + format.Count(len(f.keys), "key"), len(f.keys) > 0, nil
		})
		return &injection{observe: write.Observe, undo: func(ctx context.Context) (string, error) {
			if _, err := write.Heal(ctx); err != nil {
				return "", err
			}
			return f.remove(ctx)
		}}, nil
	},
}

// foreignData are the data that a fault has written.
type foreignData struct {
	admin cluster.Admin
	node  string
	keys  []foreignKey // that have them
}

type foreignKey struct {
	name string
	hash bool
}

const (
	foreignText = "data of another program"

	// writeForeign writes a string, or a hash, to a key that does not exist.
	writeForeign = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end " +
		"if ARGV[2] == 'hash' then redis.call('HSET', KEYS[1], 'text', ARGV[1]) " +
		"else redis.call('SET', KEYS[1], ARGV[1]) end return 1"

	// removeForeign removes that, and says whether it was as it had been written.
	removeForeign = "local value = ARGV[2] == 'hash' and redis.pcall('HGETALL', KEYS[1]) or redis.pcall('GET', KEYS[1]) " +
		"if type(value) == 'table' then value = #value == 2 and value[1] == 'text' and value[2] end " +
		"if value ~= ARGV[1] then return 0 end " +
		"return redis.call('DEL', KEYS[1])"
)

func (k foreignKey) do(ctx context.Context, a cluster.Admin, node, script string) (int64, error) {
	kind := "string"
	if k.hash {
		kind = "hash"
	}
	return number(ctx, a, node, "EVAL", script, "1", k.name, foreignText, kind)
}

// write writes to a key that is free.
func (f *foreignData) write(ctx context.Context, name string, hash bool) error {
	key := foreignKey{name, hash}
	n, err := key.do(ctx, f.admin, f.node, writeForeign)
	if err != nil || n == 0 {
		return err
	}
	f.keys = append(f.keys, key)
	return nil
}

// remove removes the data, and names the keys at which they were not there any more.
func (f *foreignData) remove(ctx context.Context) (how string, err error) {
	var changed []string
	for _, key := range f.keys {
		n, err := key.do(ctx, f.admin, f.node, removeForeign)
		if err != nil {
			return "", fmt.Errorf("removing foreign data: %w", err)
		}
		if n == 0 {
			changed = append(changed, key.name)
		}
	}
	if len(changed) > 0 {
		return history.ForeignDataLost + ": " + strings.Join(changed, ", "), nil
	}
	return "the data are removed", nil
}
