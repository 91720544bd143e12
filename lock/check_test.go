package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := startRedis(t).Dial(t)
	c := newTestClient(t, rdb, Options{})
	if err := c.Check(ctx); err != nil {
		t.Errorf("a new server: %v", err)
	}
	rdb.ConfigSet(ctx, "maxmemory-policy", "volatile-lru")
	rdb.ConfigSet(ctx, "maxmemory", "100mb")
	if err := c.Check(ctx); !errors.Is(err, ErrUnfit) {
		t.Errorf("a server that evicts keys: %v, want ErrUnfit", err)
	}
	for version, want := range map[string]bool{"6.0.16": true, "6.2.0": false, "7.0.15": false, "10.0": false, "?": false} {
		err := unfit("x", map[string]string{"redis_version": version}, map[string]string{"maxmemory": "0"})
		if errors.Is(err, ErrUnfit) != want {
			t.Errorf("version %s: %v", version, err)
		}
	}
}

// Three databases of one server are one master.
func TestDatabasesOfOneServerAreNoQuorum(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	var rdbs []redis.UniversalClient
	for db := range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, DB: db})
		t.Cleanup(func() { _ = rdb.Close() })
		rdbs = append(rdbs, rdb)
	}
	c := newQuorumClient(t, rdbs, Options{NodeTimeout: testTimeout})
	for range 2 {
		if _, err := c.Mutex("job").TryAcquire(t.Context()); !errors.Is(err, ErrSameServer) {
			t.Errorf("acquire: %v, want ErrSameServer", err)
		}
	}
	if err := c.Check(t.Context()); !errors.Is(err, ErrSameServer) {
		t.Errorf("check: %v, want ErrSameServer", err)
	}
}

// The hooks of a client see the words of a command, not pointers to them.
func TestHooksSeeWords(t *testing.T) {
	t.Parallel()
	rdb := startRedis(t).Dial(t)
	hook := &wordHook{}
	rdb.AddHook(hook)
	c := newTestClient(t, rdb, Options{})
	release(t, acquire(t, c.FencedMutex("job")))
	if len(hook.words) == 0 {
		t.Fatal("the hook saw nothing")
	}
	for _, word := range hook.words {
		switch word.(type) {
		case string, int, int64:
		default:
			t.Errorf("a word is a %T", word)
		}
	}
}

type wordHook struct{ words []any }

func (h *wordHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *wordHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := fmt.Sprint(cmd.Name()); name == "evalsha" || name == "eval" {
			h.words = append(h.words, cmd.Args()...)
		}
		return next(ctx, cmd)
	}
}

func (h *wordHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
