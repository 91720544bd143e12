// Package workload is the frame of the workloads: a row of their catalog ([Spec]), the section of a scenario
// ([Params]), and a client at work ([Env], [Actor]). It is not a promise.
package workload

import (
	"context"

	"github.com/lockchaos/lockchaos/promise"
)

// Spec is a row of the catalog.
type Spec struct {
	Name   string
	Doc    string // one sentence
	Source string
	Needs  promise.Set // without them the workload is not run
	Uses   promise.Set // promises that it exercises if the lock states them
	// CheckSequences refuses Params.Sequences if the workload does not have one of them; nil: it has none.
	CheckSequences func(p Params) error
	// MissingForSequences are the promises that a lock needs for one of Params.Sequences if it supports none of them; 0:
	// it supports one, or none is named. nil: the workload has no sequences.
	MissingForSequences func(p Params, can promise.Set) promise.Set
	// Client runs one client until stop is closed, and then completes its hold. ctx ends only if the run is abandoned.
	Client func(ctx context.Context, stop <-chan struct{}, e Env)
}
