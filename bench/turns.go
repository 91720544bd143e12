package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// blockOfPairs is how many pairs a lock makes before the next one has its turn.
const blockOfPairs = 10

// turns measures acquire and release by one goroutine, a few pairs of each lock in turn and in random order, so that a
// short slowdown of the machine slows all of them alike. Rounds of a second, as in part pairs, differ by more than
// these locks do.
func turns(ctx context.Context, srv *server, c config) error {
	all, err := open(srv.addr, rawScripts, ours, redislockEvery("redislock", 100*time.Millisecond), redsyncSubject)
	if err != nil {
		return err
	}
	defer closeAll(all)
	const oursAt = 1
	if err := srv.reset(ctx); err != nil {
		return err
	}
	took, acquired := make([][]time.Duration, len(all)), make([][]time.Duration, len(all))
	random := rand.New(rand.NewPCG(1, 1))
	for end := time.Now().Add(c.span * time.Duration(c.rounds*len(all))); time.Now().Before(end); {
		for _, i := range random.Perm(len(all)) {
			for range blockOfPairs {
				begin := time.Now()
				release, err := all[i].acquire(ctx, "bench")
				acquired[i] = append(acquired[i], time.Since(begin))
				if err == nil {
					err = release()
				}
				if err != nil {
					return fmt.Errorf("%s: %w", all[i].name, err)
				}
				took[i] = append(took[i], time.Since(begin))
			}
		}
	}
	var rows []string
	for i, s := range all {
		slices.Sort(took[i])
		slices.Sort(acquired[i])
		rows = append(rows, fmt.Sprintf("%s\t%d\t%.0f\t%.2f\t%s\t%.2f\t%s\t%s", s.name, len(took[i]),
			float64(time.Second)/float64(mean(took[i])), float64(mean(took[i]))/float64(mean(took[oursAt])),
			short(at(took[i], 50)), float64(at(took[i], 50))/float64(at(took[oursAt], 50)), short(at(took[i], 99)),
			short(at(acquired[i], 50))))
	}
	table(fmt.Sprintf("Uncontended: one goroutine, %d pairs of each lock in turn", blockOfPairs),
		"lock\tpairs\tpairs/s\tlockchaos/this\tp50\tof the medians\tp99\tacquire p50", rows)
	return nil
}

func mean(all []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// at is the percentile of sorted durations.
func at(sorted []time.Duration, percentile int) time.Duration {
	return sorted[len(sorted)*percentile/100]
}
