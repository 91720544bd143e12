//go:build ignore

// Tries the hypotheses of docs/contributors/hypotheses.md about redislock: hypotheses ID RUNS HOST:PORT.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func main() {
	id := os.Args[1]
	runs, err := strconv.Atoi(os.Args[2])
	if err != nil || id != "S28" {
		log.Fatalf("usage: hypotheses S28 RUNS HOST:PORT, not %q", os.Args[1:])
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Args[3]})
	seen := 0
	for range runs {
		reproduced, what := sameToken(redislock.New(rdb))
		fmt.Println(id, what)
		if reproduced {
			seen++
		}
	}
	fmt.Printf("%s reproduced in %d of %d runs\n", id, seen, runs)
}

// sameToken: a lock is obtained twice with one token and released once, and another client obtains it.
func sameToken(c *redislock.Client) (bool, string) {
	ctx, key := context.Background(), "hypothesis-"+rand.Text()
	own := &redislock.Options{Token: rand.Text()}
	outer, err := c.Obtain(ctx, key, time.Minute, own)
	if err != nil {
		return false, fmt.Sprintf("Obtain returned %v", err)
	}
	inner, err := c.Obtain(ctx, key, time.Minute, own)
	if err != nil {
		return false, fmt.Sprintf("the second Obtain with the same token returned %v", err)
	}
	if err := inner.Release(ctx); err != nil {
		return false, fmt.Sprintf("Release of the second returned %v", err)
	}
	_, err = c.Obtain(ctx, key, time.Minute, nil)
	ttl, ttlErr := outer.TTL(ctx)
	return err == nil, fmt.Sprintf("two Obtain with one token, one Release: another client's Obtain returned %v; the "+
		"first hold has %v left (%v)", err, ttl, ttlErr)
}
