package locks

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/lock"
)

// TestRetriesOfAnAcquire: the retry delay is asked for after requests with growing numbers, and not after the last one.
func TestRetriesOfAnAcquire(t *testing.T) {
	for name, c := range map[string]struct {
		most  int
		tries []int
		wrong bool
	}{
		"each":               {0, []int{1, 2, 3, 4}, false},
		"some":               {0, []int{2, 3, 7}, false},
		"again":              {0, []int{1, 1}, true},
		"back":               {0, []int{2, 1}, true},
		"from zero":          {0, []int{0}, true},
		"limited":            {3, []int{1, 2}, false},
		"beyond its limit":   {3, []int{1, 2, 3}, true},
		"wrong, then better": {0, []int{3, 2, 5}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &retries{most: c.most}
			for _, n := range c.tries {
				if d := r.delay(n); d < 0 || d > time.Second {
					t.Errorf("the delay after request %d is %v", n, d)
				}
			}
			if err := r.check(); errors.Is(err, client.ErrContradiction) != c.wrong {
				t.Errorf("check = %v", err)
			}
		})
	}
}

// TestFormsOfAcquires: all of them are used, each by some owners.
func TestFormsOfAcquires(t *testing.T) {
	seen := map[callForm]int{}
	for i := range 40 {
		seen[formOf(fmt.Sprintf("c0-%d", i))]++
	}
	for form := range callForms {
		if seen[form] == 0 {
			t.Errorf("no owner of 40 has form %d", form)
		}
	}
}

// TestKindsOfKeys: three keys in a row are locks of three kinds, and the same in every client.
func TestKindsOfKeys(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nothing is sent
	defer func() { _ = rdb.Close() }()
	c, err := lock.New(rdb, lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	var kinds []string
	for _, key := range []string{"orders-0", "orders-1", "orders-2"} {
		kind := fmt.Sprintf("%T", lockOfKey(c, key).acquirer)
		if slices.Contains(kinds, kind) || kind != fmt.Sprintf("%T", lockOfKey(c, key).acquirer) {
			t.Errorf("%s is a %s, after %v", key, kind, kinds)
		}
		kinds = append(kinds, kind)
	}
}
