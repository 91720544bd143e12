package cluster

import (
	"math/rand/v2"
	"time"
)

// Dice draws the random decisions of rules for one direction of one connection. It is for one goroutine at a time.
type Dice struct {
	ID   uint64     // of the direction and the connection: each draws from its own sequence
	rng  *rand.Rand // of the rule with that seed
	seed uint64
}

// Rand is the random source of a rule.
func (d *Dice) Rand(rule Rule) *rand.Rand {
	if d.rng == nil || d.seed != rule.Seed {
		d.rng, d.seed = rand.New(rand.NewPCG(rule.Seed, d.ID)), rule.Seed
	}
	return d.rng
}

// Concerned draws whether a rule concerns the next packet.
func (d *Dice) Concerned(rule Rule) bool {
	return rule.OneIn <= 1 || d.Rand(rule).Uint64N(rule.OneIn) == 0
}

// Jitter draws the jitter of the next packet.
func (d *Dice) Jitter(rule Rule) time.Duration {
	if rule.Jitter <= 0 || !d.Concerned(rule) {
		return 0
	}
	return time.Duration(d.Rand(rule).Int64N(int64(rule.Jitter) + 1))
}

// Late draws the time between the two executions of a request.
func (d *Dice) Late(rule Rule) time.Duration {
	return time.Duration(d.Rand(rule).Int64N(int64(rule.TwiceBy) + 1))
}
