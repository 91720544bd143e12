//go:build ignore

// Tries the hypotheses of docs/contributors/hypotheses.md about rueidislock: hypotheses ID RUNS HOST:PORT.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

const validity = 5 * time.Second // the library's default

func main() {
	runs, err := strconv.Atoi(os.Args[2])
	if err != nil || os.Args[1] != "S22" {
		log.Fatalf("usage: hypotheses S22 RUNS HOST:PORT, not %q", os.Args[1:])
	}
	seen := 0
	for range runs {
		reproduced, what := resent(os.Args[3])
		fmt.Println("S22", what)
		if reproduced {
			seen++
		}
	}
	fmt.Printf("S22 reproduced in %d of %d runs\n", seen, runs)
}

func open(address string) rueidislock.Locker {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{KeyValidity: validity,
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}}})
	if err != nil {
		log.Fatal(err)
	}
	return l
}

// resent: the reply to the acquire of a free lock is lost. Then another client tries to get the lock.
func resent(address string) (bool, string) {
	ctx, name := context.Background(), "hypothesis-"+rand.Text()
	r := newRelay(address)
	defer r.listener.Close()
	own, other := open(r.listener.Addr().String()), open(address)
	defer own.Close()
	defer other.Close()
	_, release, err := own.TryWithContext(ctx, "warm-"+name)
	if err != nil {
		log.Fatal(err)
	}
	release()
	r.lose(name)
	_, release, first := own.TryWithContext(ctx, name)
	release()
	patient, cancel := context.WithTimeout(ctx, 2*validity)
	defer cancel()
	start := time.Now()
	_, release, err = other.WithContext(patient, name)
	waited := time.Since(start)
	if err == nil {
		release()
	}
	return r.losses() == 1 && errors.Is(first, rueidislock.ErrNotLocked) && waited > validity/2, fmt.Sprintf("the reply to "+
		"an acquire of a free lock was lost (%d times): TryWithContext returned %v; another client got the lock after %v (%v)",
		r.losses(), first, waited.Round(time.Millisecond), err)
}
